// Set language and theme before the first paint; everything else waits for the modules.
"use strict";
(function () {
  const root = document.documentElement;
  let stored = {};
  try {
    stored = { theme: localStorage.getItem("mnemic.theme"), lang: localStorage.getItem("mnemic.lang") };
  } catch { /* no storage: the browser's own settings hold */ }
  const asked = new URLSearchParams(location.search).get("lang");
  const wish = asked || stored.lang || navigator.language || "en";
  root.lang = wish.toLowerCase().startsWith("zh") ? "zh" : "en";
  if (stored.theme === "light" || stored.theme === "dark") root.dataset.theme = stored.theme;
})();
