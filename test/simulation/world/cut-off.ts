import type { Machine } from '../../../pkg/apis/machine/v1alpha1/machine.ts';
import { at } from '../api-server/json.ts';
import type { MachinesWorld } from './machines-world.ts';

/** A look at the history of a cluster is good for two seconds, and may take ten. */
const KNOWN_MS = 12_000;
/** The same, of a request that is on its way for long. */
const WRITTEN_MS = KNOWN_MS + 25_000;
/** What a driver is asked to change. */
const CALLS: ReadonlySet<string> = new Set(['CreateMachine', 'InitializeMachine', 'DeleteMachine']);
const DESTROYED = /\/(machines|machinesets|nodes|pods)\/[^/?]+(\?|$)/;
const PHASE = ['status', 'currentStatus', 'phase'];

type WatchedWorld = Pick<
  MachinesWorld,
  'concerns' | 'downSinceMs' | 'isActing' | 'isControlDown' | 'machines' | 'namespace'
> & {
  readonly processes: Pick<MachinesWorld['processes'], 'onRequest'>;
  readonly servers: {
    readonly control: { readonly objects: Pick<MachinesWorld['servers']['control']['objects'], 'onChange'> };
  };
  readonly time: Pick<MachinesWorld['time'], 'elapsedMs'>;
};

/** Finds what processes destroy, give up, or ask a driver to change while a cluster on which that depends does not answer: nobody knows what it stores. */
export function watchCutOff(world: WatchedWorld, find: (what: string) => void): void {
  const { processes, servers, time, namespace } = world;
  processes.onRequest((request) => {
    const { method, path, sentAtMs } = request;
    const destroys = (method === 'DELETE' && DESTROYED.test(path)) || path.endsWith('/eviction');
    if (!(CALLS.has(method) || destroys) || !world.concerns(request)) return;
    const forMs = sentAtMs - world.downSinceMs;
    // The VM of a Machine that users force goes although its Node cannot be looked at.
    const isForced = !world.isControlDown && world.machines.some((one) => isGoingByForce(one, path));
    if (forMs > KNOWN_MS && !isForced) {
      find(`${method} ${path} was sent when a cluster had not answered for ${Math.round(forMs / 1_000)} s`);
    }
  });
  servers.control.objects.onChange(({ plural }, { object, previous }) => {
    if (plural !== 'machines' || object.metadata.namespace !== namespace || world.isActing) return;
    if (at(object, PHASE) !== 'Failed' || at(previous, PHASE) === 'Failed') return;
    const forMs = time.elapsedMs - world.downSinceMs;
    if (forMs > WRITTEN_MS) {
      const { name } = object.metadata;
      find(`Machine ${name} was given up when a cluster had not answered for ${Math.round(forMs / 1_000)} s`);
    }
  });
}

function isGoingByForce({ metadata: { name, labels, deletionTimestamp } }: Machine, path: string): boolean {
  const isGoing = deletionTimestamp !== undefined;
  return isGoing && labels?.['force-deletion'] === 'True' && path.split(/[/?]/).includes(name);
}
