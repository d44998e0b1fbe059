import { useRef, useState } from "preact/hooks";
import { part, type Schemas, type Send } from "../api";
import { EFFECTS, opsFor } from "../model/effects";
import type { Feed, Rule } from "../model/feed";
import { Expected } from "./expected";

interface ArmProps {
  feed: Feed;
  disk: Schemas["Disk"];
  rule: Rule | null;
  send: Send;
  close: () => void;
}

/** The fields of a new rule or the words of an armed one, and the command that does the same. */
export function Arm({ feed, disk: { name: disk, store }, rule, send, close }: ArmProps) {
  const { effect, fields, asked, lasts } = useFields(store);
  const [words, setWords] = useState(rule?.rule ?? "");
  const text = rule ? words : asked;
  const title = rule ? `Rule ${rule.id} on ${disk}` : `New rule on ${disk}`;
  const sending = useRef(false);
  const arm = async (event: Event): Promise<void> => {
    event.preventDefault();
    // The second press of a double click must not arm a second rule.
    if (sending.current) return;
    sending.current = true;
    const done = rule
      ? await send("PATCH", `/v1/rules/${rule.id}`, { rule: text }, `Rule ${rule.id} is changed.`)
      : await send("POST", `/v1/disks/${part(disk)}/rules`, { rule: text }, `Armed on ${disk}: ${text}`);
    sending.current = false;
    if (done) close();
  };
  return (
    <form class="arm" aria-label={title} onSubmit={(event) => void arm(event)}>
      <h2>{title}</h2>
      {rule ? <Text name="Rule" value={words} set={setWords} /> : fields}
      <p class="command">
        dashpot {rule ? `update ${rule.id}` : `inject ${disk}`} {text}
      </p>
      {!rule && effect.delays && <Expected feed={feed} disk={disk} rule={asked} />}
      <p class="note">{rule ? "The rule's counters go on." : "Without a time the rule stays until it is cleared."}</p>
      <button class="primary">{rule ? "Change" : lasts === "" ? "Arm" : `Arm for ${lasts}`}</button>{" "}
      <button type="button" onClick={close}>
        Cancel
      </button>
    </form>
  );
}

/** The fields of a new rule, its effect, the rule in words, and how long it lasts. */
function useFields(store: string) {
  const [name, setName] = useState(EFFECTS[0]!.name);
  const effect = EFFECTS.find((one) => one.name === name)!;
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [time, setTime] = useState("60s");
  const choices = opsFor(effect, store);
  const [ops, setOps] = useState("");
  const chosen = choices.includes(ops) ? ops : choices[0]!;
  const values = effect.fields.map((field) => typed[`${name} ${field.name}`] ?? field.value);
  const lasts = time.trim();
  const asked = `${effect.words(...values.map((value) => value.trim()))} -T ${chosen}${lasts && ` --for ${lasts}`}`;
  const fields = (
    <div class="fields">
      <Select name="Effect" value={name} choices={EFFECTS.map((one) => one.name)} set={setName} />
      <Select name="Operations" value={chosen} choices={choices} set={setOps} />
      {effect.fields.map((field, at) => {
        const set = (value: string): void => setTyped({ ...typed, [`${name} ${field.name}`]: value });
        const own = { key: field.name, name: field.name, value: values[at]!, set };
        return field.choices ? <Select {...own} choices={field.choices} /> : <Text {...own} hint={field.hint} />;
      })}
      <Text name="For" value={time} set={setTime} hint="empty: until it is cleared" />
    </div>
  );
  return { effect, fields, asked, lasts };
}

interface FieldProps {
  name: string;
  value: string;
  set: (value: string) => void;
}

function Text({ name, value, set, hint }: FieldProps & { hint?: string | undefined }) {
  return (
    <label>
      {name} <input value={value} title={hint} spellcheck={false} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
}

function Select({ name, value, choices, set }: FieldProps & { choices: string[] }) {
  return (
    <label>
      {name}{" "}
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {choices.map((one) => (
          <option key={one} value={one}>
            {one.replaceAll(",", " and ")}
          </option>
        ))}
      </select>
    </label>
  );
}
