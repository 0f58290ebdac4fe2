// Signing in with a token by hand.
import { call, sentence } from "./api.js";
import { h } from "./dom.js";
import { notice } from "./controls.js";

// signInView asks for a token, tries it, and calls done with it.
export function signInView(message, done) {
  const problem = h("div", { role: "alert" }, message ? notice("warn", message) : null);
  const input = h("input", { id: "token", type: "text", class: "secret", autocomplete: "off", autocapitalize: "off", spellcheck: "false", required: true });
  const button = h("button", { type: "submit" }, "Sign in");
  const form = h("form", { class: "panel", on: { submit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    const token = input.value.trim();
    const failure = await refusal(token);
    button.disabled = false;
    if (!failure) {
      done(token);
      return;
    }
    problem.replaceChildren(notice("bad", failure));
    input.select();
  } } },
  h("label", { for: "token" }, "Bearer token"), input, button);
  const element = h("div", { class: "signin" }, h("h1", { tabindex: "-1" }, "Sign in to Plimsoll"), problem, form,
    h("p", null, "Run ", h("code", null, "plimsoll dashboard"), " to open this page without a token, or make one for the hub's audience:"),
    h("pre", { tabindex: "0", "aria-label": "Command" }, "kubectl create token NAME --namespace NAMESPACE --audience plimsoll"),
    h("p", { class: "muted" }, "The token stays in this tab, and is forgotten when you close it or sign out."));
  return { element, title: "Sign in", close() {}, focus: () => input.focus() };
}

// refusal says why a token does not open the hub; null: it does. Not to be allowed to list clusters is no reason.
async function refusal(token) {
  if (!/^[\x21-\x7e]+$/.test(token)) return "A token has no spaces and only ASCII characters.";
  try {
    await call("GET", "v1/clusters", { query: { page_size: 1 }, token });
  } catch (failure) {
    if (failure.code !== 7) return sentence(failure);
  }
  return null;
}
