import { ask, at, attempt, keys, make, progress } from "/common.js";

let trials = [], current = null;
const chosen = (what) => document.querySelector(`input[name=${what}]:checked`)?.value;

function question(what, text, n, key) {
  const radio = make("input");
  Object.assign(radio, { type: "radio", name: what, value: n, id: `${what}${n}` });
  radio.setAttribute("aria-label", `Passage ${n + 1}: ${text}`);
  const label = make("label");
  label.append(radio, make("span", text), make("kbd", key));
  return label;
}

function passage(text, n) {
  const article = make("article");
  const heading = make("h3", `Passage ${n + 1}`);
  const choices = make("div", undefined, "choices");
  choices.append(question("author", "the author's", n, `${n + 1}`), question("best", "reads best", n, "qwe"[n]));
  article.append(heading, choices, make("p", `${text} …`, "text"));
  return article;
}

async function open(trial) {
  await attempt(async () => {
    const found = await ask(`/api/item/${trial.name}`);
    current = trial;
    at("place").textContent = `Trial ${trial.name} of ${trials.length}`;
    at("prompt").textContent = found.prompt;
    at("passages").replaceChildren(...found.passages.map(passage));
    at("note").value = "";
    at("vote").disabled = trial.voted;
    at("state").textContent = trial.voted ? "there is a vote on this trial" : "";
    progress(trials.filter((one) => one.voted).length, trials.length);
    at("main").focus();
    scrollTo(0, 0);
  });
}

function step(by) {
  const next = trials[trials.indexOf(current) + by];
  if (next) return open(next);
}

async function vote() {
  const [author, best] = [chosen("author"), chosen("best")];
  if (!current || current.voted) return;
  if (author === undefined || best === undefined) {
    at("state").textContent = "choose the author's passage, and the one that reads best";
    return;
  }
  await attempt(async () => {
    const said = { author: Number(author), best: Number(best), note: at("note").value };
    Object.assign(current, await ask(`/api/item/${current.name}`, said));
    const next = trials.find((one) => !one.voted);
    await open(next ?? current);
    if (!next) at("state").textContent = "all trials have a vote: thank you";
  });
}

const pick = (what, n) => () => { at(`${what}${n}`).checked = true; };
const told = await ask("/api/list");
trials = told.items;
document.title = at("title").textContent = `Blind reading of ${told.run}, as ${told.by}`;
at("vote").addEventListener("click", vote);
at("form").addEventListener("submit", (event) => event.preventDefault());
keys({
  1: pick("author", 0), 2: pick("author", 1), 3: pick("author", 2),
  q: pick("best", 0), w: pick("best", 1), e: pick("best", 2),
  n: () => at("note").focus(), v: vote, ArrowRight: () => step(1), ArrowLeft: () => step(-1),
});
await open(trials.find((one) => !one.voted) ?? trials[0]);
document.body.dataset.ready = "yes";
