/** What an App shows, with what can be done to it; and, when it failed, why and the ways back. */
/** @import { InstanceSummary, Interaction, Mirror, PageState, SessionSummary, SurfaceSummary } from "../types.d.ts" */
import { appTitle, t, toolTitle, tOr, wordsOfCode } from "../i18n/words.js";
import * as mirrors from "../mirror.js";
import { usePage } from "../page.js";
import { EMPTY_FORM } from "../store.js";
import { SurfaceFrame } from "../surface_frames.js";
import { Turns } from "../surface_turns.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { oneLine, visible } from "../visible.js";
import { AppSign, Progress, Said } from "./basics.js";
import { Card } from "./card.js";

/** @param {{ mirror: Mirror, instance: InstanceSummary }} props */
export function AppHead({ mirror, instance }) {
  const page = usePage();
  const calls = mirrors.openCalls(mirror).filter((call) => call.instance_id === instance.instance_id);
  const reported = calls.find((call) => call.progress !== undefined);
  return html`<div class="app-head">
    <${AppSign} scope=${instance.app_scope} title=${appTitle(instance)} />
    <h2 class="app-title"><${Said} text=${appTitle(instance)} most=${60} /></h2>
    <span class="muted app-state">${tOr(`state.${instance.state}`, oneLine(instance.state, 20))}</span>
    ${reported?.progress
      ? html`<div class="app-progress">
          <${Progress} ...${reported.progress} label=${oneLine(toolTitle(reported), 80)} />
        </div>`
      : null}
    <span class="app-acts">
      <button type="button" class="quiet" onClick=${() => void page.readLog(instance.instance_id, appTitle(instance))}>
        ${t("failed.log")}
      </button>
      <button type="button" class="quiet" onClick=${() => void page.explain(instance.instance_id)}>${t("failed.why")}</button>
      <button type="button" onClick=${() => void page.act("app.close", { instance_id: instance.instance_id })}>${t("app.close_it")}</button>
    </span>
  </div>`;
}

/**
 * Questions of the App itself that stand in its own place.
 * @param {{ state: PageState, mirror: Mirror, questions: Interaction[] }} props
 */
export const OwnQuestions = ({ state, mirror, questions }) =>
  questions.length === 0
    ? null
    : html`<div class="own-questions">
        ${questions.map(
          (question) =>
            html`<${Card}
              key=${question.interaction_id}
              mirror=${mirror}
              question=${question}
              form=${state.forms.get(question.interaction_id) ?? EMPTY_FORM}
              answered=${state.answered}
              heading="h3"
              where="inline"
            />`,
        )}
      </div>`;

const turns = new Turns();

/**
 * The surfaces that were in front once stay, hidden, so that turning to and fro loses nothing.
 * @param {{ mirror: Mirror, shown: InstanceSummary | null, theme: "light" | "dark", lang: string, link: number }} props
 */
export function Surfaces({ mirror, shown, theme, lang, link }) {
  const page = usePage();
  const [seen, setSeen] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const current = shown === null ? undefined : surfaceOfInstance(mirror, shown);
  useEffect(() => {
    if (current && !seen.has(current.surface_id)) setSeen(new Set([...seen, current.surface_id]));
  }, [current?.surface_id]);
  const send = async (/** @type {object} */ message) => {
    await turns.take();
    return page.connection.request(message);
  };
  const kept = [...mirror.surfaces.values()].filter(
    (one) => one.container === "isolated" && (seen.has(one.surface_id) || one.surface_id === current?.surface_id),
  );
  return html`${kept.map(
    (one) =>
      html`<div class="surface-slot" key=${one.surface_id} hidden=${one.surface_id !== current?.surface_id}>
        <${SurfaceFrame}
          surface=${one}
          send=${send}
          look=${{ theme, lang }}
          link=${link}
        />
      </div>`,
  )}
  ${shown !== null && !kept.some((one) => one.surface_id === current?.surface_id)
    ? html`<${NoSurface} instance=${shown} surface=${current} />`
    : null}`;
}

/** @param {Mirror} mirror @param {InstanceSummary} instance @returns {SurfaceSummary | undefined} */
const surfaceOfInstance = (mirror, instance) =>
  [...mirror.surfaces.values()].filter((one) => one.instance_id === instance.instance_id).pop() ??
  mirrors.surfaceOf(mirror, instance.app_scope);

/** @param {{ instance: InstanceSummary, surface: SurfaceSummary | undefined }} props */
function NoSurface({ instance, surface }) {
  if (surface?.text)
    return html`<div class="surface-text">
      <p class="muted">${t("app.no_surface")}</p>
      <pre tabindex="0">${visible(surface.text)}</pre>
    </div>`;
  return html`<p class="blank">
    ${instance.state === "starting" ? t("app.wakes", { title: oneLine(appTitle(instance), 60) }) : t("app.nothing")}
  </p>`;
}

/** An App that failed: why, and what the person can do. @param {{ session: SessionSummary }} props */
export function FailedApp({ session }) {
  const page = usePage();
  const title = oneLine(appTitle(session), 60);
  const newest = session.newest_instance_id;
  return html`<section class="failed-app">
    <${AppSign} scope=${session.app_scope} title=${appTitle(session)} />
    <h2>${t("failed.title", { title })}</h2>
    <p>${t("failed.text", { why: wordsOfCode(session.error ?? "unknown") })}</p>
    <div class="card-buttons">
      <button type="button" class="primary" onClick=${() => void page.act("app.open", { app_scope: session.app_scope })}>
        ${t("failed.again")}
      </button>
      <button type="button" onClick=${() => void page.act("app.start_empty", { app_scope: session.app_scope })}>
        ${t("failed.empty")}
      </button>
      ${
        newest
          ? html`<button type="button" onClick=${() => void page.explain(newest)}>${t("failed.why")}</button>
              <button type="button" onClick=${() => void page.readLog(newest, appTitle(session))}>${t("failed.log")}</button>`
          : null
      }
    </div>
    <p class="hint">${t("failed.empty_hint")}</p>
  </section>`;
}
