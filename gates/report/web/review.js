import { ask, at, attempt, keys, make, progress } from "/common.js";

const SIGN = { ok: "✔", bad: "✘" };
let all = [], shown = [], labels = [], current = null;

function unread(item) { return !item.mark; }

function drawList() {
  const arm = at("arm").value;
  shown = all.filter((item) => arm === "" || item.needed_for.includes(arm));
  progress(shown.filter((item) => !unread(item)).length, shown.length);
  at("list").replaceChildren(...shown.map((item) => {
    const button = make("button", `${SIGN[item.mark] ?? "○"} ${item.place}`);
    button.type = "button";
    button.append(make("small", `${item.why}${item.mark ? `, marked ${item.mark}` : ", unread"}`));
    button.dataset.name = item.name;
    if (item === current) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => open(item));
    const row = make("li");
    row.append(button);
    return row;
  }));
  at("list").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

function excerpt(words) {
  return [make("span", `… ${words.before} `, "around"), make("mark", words.run), make("span", ` ${words.after} …`, "around")];
}

function drawQuotes(item) {
  at("there").replaceChildren(...item.quotes.flatMap((quote) => {
    const text = make("p", quote.words ? undefined : `not shown: ${quote.missing}`, "text");
    if (quote.words) text.append(...excerpt(quote.words));
    return [make("p", `${quote.file}, word ${quote.start}`, "source"), text];
  }));
  if (item.more_sources) at("there").append(make("p", `and in ${item.more_sources} more places`));
  if (item.elsewhere) at("there").append(make("p", `other authors have it too: ${item.elsewhere}`));
}

async function open(item) {
  await attempt(async () => {
    const found = await ask(`/api/item/${item.name}`);
    current = item;
    at("place").textContent = item.place;
    at("why").textContent = item.why;
    at("prompt").textContent = found.prompt;
    at("text").textContent = found.error ? `no answer: ${found.error}` : found.text || "(empty)";
    at("match").hidden = !found.run;
    at("labels").hidden = !found.run;
    if (found.run) at("here").replaceChildren(...excerpt(found.run));
    drawQuotes(found);
    at("note").value = item.note;
    choose(item.label);
    at("state").textContent = item.mark ? `marked ${item.mark}` : "unread";
    drawList();
    at("main").focus();
    at("main").scrollTop = 0;
  });
}

function choose(label) {
  for (const radio of at("labels").querySelectorAll("input")) radio.checked = radio.value === (label ?? "");
}

function step(by) {
  const place = shown.indexOf(current);
  const next = shown[Math.min(Math.max(place + by, 0), shown.length - 1)];
  if (next) return open(next);
}

function nextUnread() {
  const place = shown.indexOf(current);
  const next = [...shown.slice(place + 1), ...shown.slice(0, place + 1)].find(unread);
  if (next) return open(next);
  at("state").textContent = "everything here is read";
}

async function keep(mark) {
  if (!current) return;
  const item = current;
  const label = at("labels").hidden ? null : at("labels").querySelector("input:checked")?.value || null;
  at("state").textContent = "keeping…";
  await attempt(async () => {
    Object.assign(item, await ask(`/api/item/${item.name}`, { mark, label, note: at("note").value }));
    at("state").textContent = `kept: ${item.mark}`;
    drawList();
    if (mark === "ok") await nextUnread();
  });
}

function drawLabels() {
  const row = (value, text, key) => {
    const radio = make("input");
    Object.assign(radio, { type: "radio", name: "label", value });
    const label = make("label");
    label.append(radio, make("span", text), make("kbd", key));
    return label;
  };
  at("labels").append(...labels.map((label, n) => row(label, label, `${n + 1}`)), row("", "nothing of these", "0"));
}

const told = await ask("/api/list");
all = told.items;
labels = told.labels;
document.title = at("title").textContent = `Review of ${told.run}, as ${told.by}`;
at("question").textContent = told.question;
at("arm").append(...["", ...told.arms].map((arm) => {
  const option = make("option", arm || "any candidate");
  option.value = arm;
  return option;
}));
at("arm").addEventListener("change", () => { drawList(); nextUnread(); });
at("ok").addEventListener("click", () => keep("ok"));
at("bad").addEventListener("click", () => keep("bad"));
at("form").addEventListener("submit", (event) => event.preventDefault());
// A note that is written after its mark is kept with it.
at("note").addEventListener("change", () => { if (current?.mark) keep(current.mark); });
drawLabels();
drawList();
keys({
  ArrowRight: () => step(1), ArrowLeft: () => step(-1), j: () => step(1), k: () => step(-1),
  u: nextUnread, o: () => keep("ok"), b: () => keep("bad"), n: () => at("note").focus(),
  0: () => choose(null), ...Object.fromEntries(labels.map((label, n) => [n + 1, () => choose(label)])),
});
await nextUnread();
if (!current && shown.length) await open(shown[0]);
document.body.dataset.ready = "yes";
