/** What goes on: calls with their progress, running Apps, the record of decisions. */
/** @import { AuditRow, CallSummary, InstanceSummary, Mirror } from "../types.d.ts" */
import { appTitle, dayAndTime, t, timeOfDay, toolTitle, tOr, wordsOfCode } from "../i18n/words.js";
import * as mirrors from "../mirror.js";
import { usePage } from "../page.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { oneLine } from "../visible.js";
import { AppSign, KeepsFocus, Progress, Said } from "./basics.js";
import { Described } from "./describe.js";

const ENDED_SHOWN = 30;
const AUDIT_ROWS = 30;

/** @param {{ mirror: Mirror }} props */
export function Activity({ mirror }) {
  const open = mirrors.openCalls(mirror);
  const ended = mirrors.endedCalls(mirror).slice(0, ENDED_SHOWN);
  const running = [...mirror.instances.values()].filter((one) => !mirrors.isGone(one));
  return html`<${KeepsFocus}>
    <h3>${t("activity.open")}</h3>
    ${
      open.length
        ? html`<ul class="rows">
            ${open.map((call) => html`<${Call} key=${call.number} call=${call} mirror=${mirror} />`)}
          </ul>`
        : html`<p class="blank-row">${t("activity.none_open")}</p>`
    }
    <h3>${t("activity.running")}</h3>
    ${
      running.length
        ? html`<ul class="rows">
            ${running.map((one) => html`<${Instance} key=${one.instance_id} instance=${one} />`)}
          </ul>`
        : html`<p class="blank-row">${t("activity.none_running")}</p>`
    }
    <h3>${t("activity.ended")}</h3>
    ${
      ended.length
        ? html`<ul class="rows">
            ${ended.map((call) => html`<${Call} key=${call.number} call=${call} mirror=${mirror} />`)}
          </ul>`
        : html`<p class="blank-row">${t("activity.none_ended")}</p>`
    }
    <${Audit} />
    <p class="hint">${t("activity.kernel", { version: oneLine(mirror.kernel.version ?? "", 20) })}</p>
  <//>`;
}

/** @param {CallSummary} call */
const stateOf = (call) => (call.cancel !== "none" && mirrors.isOpenCall(call) ? "cancelling" : call.status);

/** @param {Mirror} mirror @param {CallSummary} call */
const factsOf = (mirror, call) =>
  [
    oneLine(mirrors.titleOf(mirror, call.app_scope), 40),
    t("activity.from", { who: tOr(`source.${call.source}`, call.source) }),
    call.attempts ? t("activity.attempt", { count: call.attempts + 1 }) : "",
    call.error_code && call.error_code !== call.status ? wordsOfCode(call.error_code) : "",
  ].filter(Boolean);

/** @param {{ call: CallSummary, mirror: Mirror }} props */
function Call({ call, mirror }) {
  const [isOpen, setIsOpen] = useState(false);
  const title = oneLine(toolTitle(call), 80);
  const state = stateOf(call);
  const isWorking = mirrors.isOpenCall(call);
  const isQuestion = call.app_scope === "interaction";
  return html`<li class="row">
    <div class="row-head">
      <button type="button" class="row-title" aria-expanded=${isOpen ? "true" : "false"} onClick=${() => setIsOpen(!isOpen)}>
        <bdi>${title}</bdi><span class="hidden"> ${t("activity.details", { title })}</span>
      </button>
      <span class=${`chip chip-${oneLine(state, 20)}`}>${tOr(`state.${state}`, oneLine(state, 20))}</span>
    </div>
    <p class="row-facts muted">
      <time datetime=${call.created_at} title=${dayAndTime(call.created_at)}>${timeOfDay(call.created_at)}</time>
      ${factsOf(mirror, call).map((fact) => ` · ${fact}`)}
    </p>
    ${isWorking && call.progress
      ? html`<${Progress} percent=${call.progress.percent} message=${call.progress.message} label=${title} />`
      : null}
    ${isWorking && !isQuestion ? html`<${Cancel} call=${call} title=${title} />` : null}
    ${isOpen ? html`<${CallDetails} call=${call} />` : null}
  </li>`;
}

/** @param {{ call: CallSummary, title: string }} props */
function Cancel({ call, title }) {
  const page = usePage();
  const cancel = () => void page.act("call.cancel", { call_id: call.call_id });
  const label = t("activity.cancel_label", { title });
  return html`<div class="row-acts">
    <button type="button" disabled=${call.cancel !== "none"} aria-label=${label} onClick=${cancel}>${t("activity.cancel")}</button>
  </div>`;
}

/** What it was asked with and what came of it, as people read it. @param {{ call: CallSummary }} props */
function CallDetails({ call }) {
  const page = usePage();
  const [whole, setWhole] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let isHere = true;
    void page.act("calls.show", { call_id: call.call_id }).then((outcome) => {
      if (isHere && outcome.ok) setWhole(outcome.value);
    });
    return () => {
      isHere = false;
    };
  }, [call.call_id, call.status]);
  return html`<div class="details">
    <code class="ident">${oneLine(call.tool_id, 80)}</code>
    ${
      whole === null
        ? html`<span class="spinner" aria-hidden="true"></span>`
        : html`<h4>${t("activity.input")}</h4>
            <${Described} value=${whole.input} />
            <h4>${t("activity.result")}</h4>
            ${whole.result ? html`<${Described} value=${whole.result} />` : html`<p class="muted">${t("activity.no_result")}</p>`}`
    }
    <button type="button" class="quiet" onClick=${() => void page.explain(call.call_id)}>${t("failed.why")}</button>
  </div>`;
}

/** @param {{ instance: InstanceSummary }} props */
function Instance({ instance }) {
  const page = usePage();
  const facts = [
    tOr(`state.${instance.state}`, oneLine(instance.state, 20)),
    instance.open_calls ? t("tab.busy", { count: instance.open_calls }) : "",
    instance.error ? wordsOfCode(instance.error) : "",
  ].filter(Boolean);
  return html`<li class="row row-flat">
    <${AppSign} scope=${instance.app_scope} title=${appTitle(instance)} />
    <span class="row-words"
      ><strong><${Said} text=${appTitle(instance)} most=${40} /></strong
      ><span class="muted">
        ${` ${facts.join(" · ")}`}</span
      ></span
    >
    <button type="button" class="quiet" onClick=${() => void page.readLog(instance.instance_id, appTitle(instance))}>${t("failed.log")}</button>
    <button type="button" class="quiet" onClick=${() => void page.explain(instance.instance_id)}>${t("failed.why")}</button>
  </li>`;
}

function Audit() {
  const page = usePage();
  const [rows, setRows] = useState(/** @type {AuditRow[]} */ ([]));
  const read = () =>
    void page.act("audit.tail", { limit: AUDIT_ROWS }).then((outcome) => {
      if (outcome.ok) setRows([...outcome.value.rows].reverse());
    });
  useEffect(read, []);
  return html`<div class="head-row">
      <h3>${t("activity.audit")}</h3>
      <button type="button" class="quiet" onClick=${read}>${t("activity.refresh")}</button>
    </div>
    <p class="hint">${t("activity.audit_hint")}</p>
    <${AuditTable} rows=${rows} />`;
}

/** @param {{ rows: AuditRow[] }} props */
export const AuditTable = ({ rows }) =>
  html`<div class="table-box" tabindex="0" role="group" aria-label=${t("audit.table")}>
    <table class="audit">
      <thead>
        <tr>
          <th scope="col">${t("audit.seq")}</th>
          <th scope="col">${t("audit.when")}</th>
          <th scope="col">${t("audit.who")}</th>
          <th scope="col">${t("audit.event")}</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr key=${row.seq}>
              <td>${row.seq}</td>
              <td>${timeOfDay(row.at)}</td>
              <td>${tOr(`speaker.${row.speaker}`, oneLine(row.speaker, 20))}</td>
              <td title=${oneLine(row.event, 60)}>
                ${tOr(`event.${row.event}`, oneLine(row.event, 60))}
                ${row.code ? html`${" "}<span class="muted" title=${oneLine(row.code, 40)}>${wordsOfCode(row.code)}</span>` : null}
                ${(row.count ?? 1) > 1 ? ` ×${row.count}` : ""}
              </td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
