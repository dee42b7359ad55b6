import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import { explain } from '../../pkg/controllers/machine/explain/explain.ts';
import type { SimulatedAPIServer } from '../../test/simulation/api-server/api-server.ts';

/** Tells of each change of a Machine in one line, until the returned function is called. */
export function tellOfMachines({ objects }: SimulatedAPIServer, tell: (line: string) => void): () => void {
  const told = new Map<string, string>();
  return objects.onChange(({ plural, group }, { type, object }) => {
    if (plural !== 'machines' || group !== 'machine.sapcloud.io') return;
    const { name } = object.metadata;
    const line = type === 'DELETED' ? 'Gone' : lineOf(object as unknown as Machine);
    if (told.get(name) === line) return;
    if (type === 'DELETED') told.delete(name);
    else told.set(name, line);
    tell(`${name}  ${line}`);
  });
}

/** As of no moment: it must not change by itself as time passes. */
function lineOf(machine: Machine): string {
  const { phase, message } = explain(machine, 0);
  return `${(phase === '' ? 'New' : phase).padEnd(12)} ${message}`;
}
