// What both pages share: elements by id, calls to the desk, and keys. Text is set as text, never as mark-up.
export const at = (id) => document.getElementById(id);

export function make(tag, text, ...kinds) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  made.classList.add(...kinds);
  return made;
}

export async function ask(path, said) {
  const asked = said === undefined ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(said),
  };
  const answer = await fetch(path, asked);
  const told = await answer.json().catch(() => ({ error: `the answer was ${answer.status}` }));
  if (!answer.ok) throw new Error(told.error ?? `the answer was ${answer.status}`);
  return told;
}

// Show what failed where it is seen and read aloud; what was typed stays.
export async function attempt(work) {
  at("trouble").textContent = "";
  try {
    await work();
  } catch (error) {
    at("state").textContent = "";
    at("trouble").textContent = `Not kept: ${error.message}. Is gates still running?`;
  }
}

export function keys(map) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("textarea, select");
    if (typing && event.key === "Escape") at("main").focus();
    if (typing || !(event.key in map)) return;
    event.preventDefault();
    map[event.key]();
  });
}

export function progress(done, of) {
  at("done").max = Math.max(1, of);
  at("done").value = done;
  at("count").textContent = `${done} of ${of} read`;
}
