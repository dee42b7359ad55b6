import { machineLineOf } from '../../cmd/demo/machine-line.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { SimulatedAPIServer } from '../../test/simulation/api-server/api-server.ts';

/** Tells of each change of a Machine in one line, until the returned function is called. */
export function tellOfMachines({ objects }: SimulatedAPIServer, tell: (line: string) => void): () => void {
  const told = new Map<string, string>();
  return objects.onChange(({ plural, group }, { type, object }) => {
    if (plural !== 'machines' || group !== 'machine.sapcloud.io') return;
    const { name } = object.metadata;
    const line = type === 'DELETED' ? 'Gone' : machineLineOf(object as unknown as Machine);
    if (told.get(name) === line) return;
    if (type === 'DELETED') told.delete(name);
    else told.set(name, line);
    tell(`${name}  ${line}`);
  });
}
