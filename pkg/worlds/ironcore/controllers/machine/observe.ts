import { next } from '../../../../work/reconcile/result.ts';
import { UID_LABEL } from './keys.ts';
import type { PassCollaborators, IronCoreStep } from './machine-pass.ts';
import { isMachineOf, runtimeIDOf, runtimeNameOf } from './runtime-id.ts';
import { listRuntimeMachines } from './sightings.ts';

/**
 * Finds all machines of the Machine: by the label with its UID, and by the id that it knows, for one whose labels were lost. Before anything
 * is claimed: what the runtime has may still use what the Machine no longer names.
 */
export const observeMachines = ({ sightings }: Pick<PassCollaborators, 'sightings'>): IronCoreStep => ({
  name: 'observe',
  async run(pass) {
    const { observed, poolName, runtime, signal } = pass;
    const shown = await listRuntimeMachines(runtime, { labels: { [UID_LABEL]: observed.metadata.uid } }, signal);
    sightings.saw(poolName, shown);
    pass.existing = shown.machines;
    const id = runtimeIDOf(observed);
    if (id === '' || shown.machines.some(({ metadata }) => metadata.id === id)) return next;
    const { name } = await runtime.version(signal);
    pass.answering = name;
    // Another runtime may have given the id to somebody else.
    if (name !== runtimeNameOf(observed)) return next;
    const known = await runtime.machines({ id }, signal);
    pass.existing = [...shown.machines, ...known.filter((one) => isMachineOf(observed, one))];
    return next;
  },
});
