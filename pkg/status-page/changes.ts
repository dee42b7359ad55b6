import { toTimestamp } from '../base/clock/clock.ts';
import type { PageSnapshot } from './snapshot.ts';

/** A snapshot in parts, each of them as it is sent. */
export interface EncodedSnapshot {
  readonly sections: ReadonlyMap<string, string>;
  /** By key. */
  readonly machines: ReadonlyMap<string, string>;
}

/** Before anything was sent. */
export const NOTHING_SENT: EncodedSnapshot = { sections: new Map(), machines: new Map() };

/** Views that are shown again are not encoded again. */
const ENCODED = new WeakMap<object, string>();

function encoded(view: object): string {
  const json = ENCODED.get(view) ?? JSON.stringify(view);
  ENCODED.set(view, json);
  return json;
}

export function encode({ sections, machines }: PageSnapshot): EncodedSnapshot {
  return {
    sections: new Map(Object.entries(sections).map(([name, section]) => [name, JSON.stringify(section)])),
    machines: new Map(machines.map((machine) => [machine.key, encoded(machine)])),
  };
}

/** The `Changes` (view.ts) that lead from one snapshot to another, as JSON; undefined when there are none. */
export function changesBetween(before: EncodedSnapshot, after: EncodedSnapshot, nowMs: number): string | undefined {
  const sections = changed(before.sections, after.sections).map(([name, json]) => `${JSON.stringify(name)}:${json}`);
  const machines = changed(before.machines, after.machines).map(([, json]) => json);
  const gone = [...before.machines.keys()].filter((key) => !after.machines.has(key));
  if (sections.length + machines.length + gone.length === 0) return undefined;
  const at = JSON.stringify(toTimestamp(nowMs));
  return `{"at":${at},"sections":{${sections.join()}},"machines":[${machines.join()}],"gone":${JSON.stringify(gone)}}`;
}

function changed(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): [string, string][] {
  return [...after].filter(([key, json]) => before.get(key) !== json);
}
