/**
 * The person's standing answers to Apps, and taking them back (SPEC 10); which Apps may ask questions of their own (SPEC 7.4); and messages
 * an App could not take (SPEC 5.4).
 */
/** @import { AppSummary, PageState, Parked, Permission } from "../types.d.ts" */
import { appTitle, dayAndTime, sizeWords, t, tOr } from "../i18n/words.js";
import * as mirrors from "../mirror.js";
import { usePage } from "../page.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { oneLine } from "../visible.js";
import { AppSign, KeepsFocus, Said } from "./basics.js";

/**
 * A button that asks once more before it does something that cannot be undone.
 * @param {{ label: string, sure: string, more?: string, run: () => void }} props
 */
function Sure({ label, sure, more, run }) {
  const [isAsked, setIsAsked] = useState(false);
  const press = () => {
    if (isAsked) run();
    setIsAsked(!isAsked);
  };
  return html`<button type="button" class=${isAsked ? "danger" : ""} onClick=${press} onBlur=${() => setIsAsked(false)}>
    ${isAsked ? sure : label}${more ? html`<span class="hidden"> ${more}</span>` : null}
  </button>`;
}

/** @param {{ state: PageState }} props */
export function Permissions({ state }) {
  const page = usePage();
  const [found, setFound] = useState(/** @type {Permission[] | null} */ (null));
  const read = () =>
    void page.act("permissions.list").then((outcome) => {
      if (outcome.ok) setFound(outcome.value.permissions);
    });
  useEffect(read, [state.mirror?.consents, state.mirror?.instances.size]);
  const revoke = async (/** @type {Permission} */ one) => {
    await page.act("permissions.revoke", { app_scope: one.app_scope, capability: one.capability });
    read();
  };
  const reset = async (/** @type {string | undefined} */ scope) => {
    await page.act("permissions.reset", scope === undefined ? {} : { app_scope: scope });
    read();
  };
  if (found === null) return html`<span class="spinner" aria-hidden="true"></span>`;
  return html`<${KeepsFocus}
    ><p class="hint">${t("permissions.hint")}</p>
    ${
      found.length === 0
        ? html`<p class="blank-row">${t("permissions.none")}</p>`
        : html`<ul class="rows">
              ${found.map(
                (one) =>
                  html`<${PermissionRow} key=${one.number} one=${one} onRevoke=${() => void revoke(one)} />`,
              )}
            </ul>
            <div class="row-acts">
              ${resettable(found).map(
                ({ scope, app }) =>
                  html`<${Sure}
                    key=${scope}
                    label=${t("permissions.reset_app", { app })}
                    sure=${t("permissions.reset_app_sure", { app })}
                    run=${() => void reset(scope)}
                  />`,
              )}
              <${Sure} label=${t("permissions.reset")} sure=${t("permissions.reset_sure")} run=${() => void reset(undefined)} />
            </div>`
    }
    <${OwnQuestionsPolicy} apps=${state.mirror?.apps ?? []} /><//
  >`;
}

/** The Apps of which there is more than one answer to take back, when there are others beside. @param {Permission[]} found */
function resettable(found) {
  const counts = new Map(found.map((one) => [one.app_scope, { app: oneLine(one.app_title, 60), count: 0 }]));
  for (const one of found) (counts.get(one.app_scope) ?? { count: 0 }).count += 1;
  return counts.size < 2 ? [] : [...counts].filter(([, { count }]) => count > 1).map(([scope, { app }]) => ({ scope, app }));
}

/** @param {{ apps: AppSummary[] }} props */
function OwnQuestionsPolicy({ apps: all }) {
  const page = usePage();
  const apps = all.filter((app) => app.may_ask !== undefined);
  const turn = (/** @type {AppSummary} */ app) =>
    page.act("policy.set", { name: `standard-interaction:${app.app_scope}`, allowed: !app.may_ask });
  if (apps.length === 0) return null;
  return html`<h3>${t("policy.title")}</h3>
    <p class="hint">${t("policy.hint")}</p>
    <ul class="rows">
      ${apps.map(
        (app) =>
          html`<li key=${app.app_scope} class="row row-flat">
            <${AppSign} scope=${app.app_scope} title=${appTitle(app)} />
            <span class="row-words"
              ><strong><${Said} text=${appTitle(app)} most=${60} /></strong> <code class="ident"><${Said} text=${app.app_scope} most=${60} /></code
            ></span>
            <button
              type="button"
              role="switch"
              class="switch"
              aria-checked=${app.may_ask ? "true" : "false"}
              aria-label=${t("policy.label", { app: oneLine(appTitle(app), 60) })}
              onClick=${() => void turn(app)}
            >
              <span class="switch-track" aria-hidden="true"></span>${t("policy.may")}
            </button>
          </li>`,
      )}
    </ul>`;
}

/** @param {{ one: Permission, onRevoke: () => void }} props */
function PermissionRow({ one, onRevoke }) {
  return html`<li class="row">
    <div class="row-head">
      <${AppSign} scope=${one.app_scope} title=${one.app_title} /><strong
        ><${Said} text=${one.app_title} most=${60} /></strong
      ><code class="ident"><${Said} text=${one.app_scope} most=${60} /></code>
    </div>
    <p class="row-text">
      ${whatOf(one)}${" "}
      <span class=${`chip ${one.scope === "never" ? "chip-failed" : "chip-completed"}`}
        >${tOr(`scope.${one.scope}`, oneLine(one.scope, 20))}</span
      >
    </p>
    ${one.counts ? null : html`<p class="error">${t("permissions.void")}</p>`}
    <div class="row-acts">
      <button
        type="button"
        aria-label=${t("permissions.revoke_label", { what: whatOf(one), app: oneLine(one.app_title, 60) })}
        onClick=${onRevoke}
      >
        ${t("permissions.revoke")}</button
      ><span class="muted">${dayAndTime(one.granted_at)}</span>
    </div>
  </li>`;
}

/** @param {Permission} permission */
const whatOf = (permission) => tOr(`capability.${permission.capability}`, oneLine(permission.title, 60));

/** @param {{ state: PageState }} props */
export function ParkedMessages({ state }) {
  const page = usePage();
  useEffect(() => void page.readParked(), []);
  return html`<${KeepsFocus}
    ><p class="hint">${t("parked.hint")}</p>
    ${
      state.parked.length === 0
        ? html`<p class="blank-row">${t("parked.none")}</p>`
        : html`<ul class="rows">
            ${state.parked.map((row) => html`<${ParkedRow} key=${row.number} row=${row} state=${state} />`)}
          </ul>`
    }<//
  >`;
}

/** @param {{ row: Parked, state: PageState }} props */
function ParkedRow({ row, state }) {
  const page = usePage();
  const title = state.mirror ? oneLine(mirrors.titleOf(state.mirror, row.app_scope), 60) : row.app_scope;
  const facts = [
    t("parked.tries", { count: row.delivery_count }),
    t("parked.crashes", { count: row.crash_count }),
    sizeWords(row.size),
    dayAndTime(row.created_at),
  ];
  const act = async (/** @type {string} */ type) => {
    await page.act(type, { number: row.number });
    await page.readParked();
  };
  return html`<li class="row">
    <div class="row-head">
      <${AppSign} scope=${row.app_scope} title=${title} /><strong>${title}</strong
      ><code class="ident"><${Said} text=${row.topic} most=${60} /></code>
    </div>
    <p class="row-facts muted">
      ${facts.join(" · ")}
    </p>
    <div class="row-acts">
      <button type="button" onClick=${() => void act("inbox.retry")}>
        ${t("parked.retry")}<span class="hidden"> ${title}, #${row.number}</span>
      </button>
      <${Sure}
        label=${t("parked.drop")}
        sure=${t("parked.drop_sure")}
        more=${`${title}, #${row.number}`}
        run=${() => void act("inbox.drop")}
      />
    </div>
  </li>`;
}
