// Before anything is painted: whoever chose dark or light is not shown the other one first.
try {
  const chosen = localStorage.getItem("perdure.look");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.look = chosen;
} catch {
  // Storage is turned off: then the system's choice holds.
}
