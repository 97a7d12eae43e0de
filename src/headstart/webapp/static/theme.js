"use strict";
// Light or dark, as chosen here before; in the head, so that the page never flashes.
const chosenTheme = localStorage.getItem("headstart-theme");
if (chosenTheme === "light" || chosenTheme === "dark") document.documentElement.dataset.theme = chosenTheme;
