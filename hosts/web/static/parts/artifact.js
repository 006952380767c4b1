/** A file an App keeps: an image is shown, everything else can be saved. Its address is good for one reading, so each showing asks anew. */
import { sizeWords, t } from "../i18n/words.js";
import { usePage } from "../page.js";
import { html, useEffect, useState } from "../vendor/htm-preact.js";
import { oneLine } from "../visible.js";

const IMAGE = /^image\/(?:png|jpeg|gif|webp|svg\+xml)$/;

/** @param {{ id: string, alt?: string }} props */
export function Artifact({ id, alt }) {
  const page = usePage();
  const [found, setFound] = useState(/** @type {{ path: string, media_type: string, size: number } | null} */ (null));
  const [trouble, setTrouble] = useState(false);
  useEffect(() => {
    let isHere = true;
    void page.connection.request({ op: "artifact", artifact_id: id }).then((outcome) => {
      if (!isHere) return;
      if (outcome.ok) setFound(outcome.value);
      else setTrouble(true);
    });
    return () => {
      isHere = false;
    };
  }, [id]);
  if (trouble) return html`<span class="muted">${t("code.artifact_not_found")}</span>`;
  if (found === null) return html`<span class="artifact waiting"></span>`;
  const words = alt ? oneLine(alt) : t("value.image");
  if (IMAGE.test(found.media_type)) return html`<img class="artifact" src=${found.path} alt=${words} onError=${() => setTrouble(true)} />`;
  const save = () =>
    void page.connection.request({ op: "artifact", artifact_id: id, save_as: nameOf(found.media_type) }).then((outcome) => {
      if (outcome.ok) download(outcome.value.path);
      else setTrouble(true);
    });
  return html`<button type="button" onClick=${save}>${t("value.save")} · ${t("value.file", { size: sizeWords(found.size) })}</button>`;
}

const ENDINGS = new Map([
  ["application/json", "json"],
  ["application/pdf", "pdf"],
  ["text/csv", "csv"],
  ["text/plain", "txt"],
]);

/** @param {string} mediaType */
const nameOf = (mediaType) => `lineup.${ENDINGS.get(mediaType) ?? "bin"}`;

/** Follow an address that is answered as a download. @param {string} path */
export function download(path) {
  const link = document.createElement("a");
  link.href = path;
  link.download = "";
  link.click();
}
