"use strict";
(() => {
  const form = document.querySelector(".filters");
  const beats = [...document.querySelectorAll(".beat")];
  const answers = [...document.querySelectorAll(".answers article")];
  const told = form.querySelector("output");
  form.hidden = false;

  const filter = () => {
    const wanted = { arm: form.arm.value, seed: form.seed.value, flag: form.flag.value };
    const fits = (answer) =>
      (!wanted.arm || answer.dataset.arm === wanted.arm) &&
      (!wanted.seed || answer.dataset.seed === wanted.seed) &&
      (!wanted.flag || answer.dataset.flags.split("|").includes(wanted.flag));
    let shown = 0;
    for (const answer of answers) {
      answer.hidden = !fits(answer);
      shown += answer.hidden ? 0 : 1;
    }
    for (const box of document.querySelectorAll(".row, .beat")) {
      box.hidden = !box.querySelector("article:not([hidden])");
    }
    told.textContent = `${shown} of ${answers.length} texts`;
  };
  const open = (wanted) => beats.forEach((beat) => (beat.open = wanted));
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const beat = target && target.closest(".beat");
    if (!beat) return;
    form.reset();
    filter();
    beat.open = true;
    target.scrollIntoView({ block: "center" });
    target.tabIndex = -1;
    target.focus();
  };

  form.addEventListener("change", filter);
  form.open.addEventListener("click", () => open(true));
  form.close.addEventListener("click", () => open(false));
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", follow);
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("figure details:not([open]), #answer details:not([open])")];
    opened.forEach((box) => (box.open = true));
  });
  addEventListener("afterprint", () => opened.forEach((box) => (box.open = false)));
  filter();
  follow();
})();
