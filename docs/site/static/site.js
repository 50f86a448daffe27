// SPDX-License-Identifier: Apache-2.0
// A tab that is chosen is chosen in all groups that have one of its title, on the next pages, too.
document.addEventListener("DOMContentLoaded", () => {
  // Debian's Furo darkens code alone where the system is dark; the rest follows here.
  if (document.body.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches) document.body.dataset.theme = "dark";
  const groups = [...document.querySelectorAll(".sg-tabs")];
  const choose = (title, among = groups) => {
    for (const group of among) {
      const own = [...group.children].filter(each => each.classList.contains("sg-tab"));
      if (!own.some(each => each.dataset.tab === title)) continue;
      for (const each of own) each.hidden = each.dataset.tab !== title;
      for (const button of group.firstElementChild.children) button.setAttribute("aria-selected", button.dataset.tab === title);
    }
  };
  let kept = null;
  try { kept = localStorage.getItem("streamgemm-tab"); } catch (error) { /* pages of files may have no storage */ }
  for (const group of groups) {
    group.classList.add("sg-live");
    choose(group.firstElementChild.firstElementChild.dataset.tab, [group]);
  }
  if (kept) choose(kept);
  const shown = () => {  // a link to what a tab holds
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1))), panel = target && target.closest(".sg-tab");
    if (panel) { choose(panel.dataset.tab); target.scrollIntoView(); }
  };
  shown();
  window.addEventListener("hashchange", shown);
  document.addEventListener("click", event => {
    const button = event.target.closest(".sg-tab-titles button");
    if (!button) return;
    const before = button.getBoundingClientRect().top;
    choose(button.dataset.tab);
    window.scrollBy(0, button.getBoundingClientRect().top - before);
    try { localStorage.setItem("streamgemm-tab", button.dataset.tab); } catch (error) { /* as above */ }
  });
});
