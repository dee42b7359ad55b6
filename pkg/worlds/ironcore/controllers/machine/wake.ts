import { isDeepStrictEqual } from 'node:util';

import type { IronCoreMachine } from '../../api/machine.ts';
import {
  CREATION_SENT_ANNOTATION,
  CREATION_SENT_TO_ANNOTATION,
  DELETION_SENT_ANNOTATION,
  MISSING_WITH_ANNOTATION,
  GIVE_UP_MISSING_MACHINES_UNTIL_ANNOTATION as GIVE_UP,
} from '../../../../apis/machine/v1alpha1/labels.ts';
import { controllerOf, isBeingDeleted, keyBeside, keyOf, type KubeObject } from '../../../../apis/meta.ts';
import { kindKeys } from '../../../../work/reconcile/kind-keys.ts';
import type { Queue } from '../../../../work/workqueue/queue.ts';
import type { IronCoreCollaborators } from '../collaborators.ts';

/** What the queue holds: Machines, and pools whose runtimes are looked at. */
const KEYS = kindKeys('machine', 'pool');

export const ironCoreQueueKeyOf = KEYS.queueKeyOf;

export const queuedObject = KEYS.objectOf;

type Watched = Pick<
  IronCoreCollaborators,
  'machines' | 'pools' | 'classes' | 'volumes' | 'networkInterfaces' | 'networks' | 'secrets' | 'prefixes'
>;

/** Enqueues Machines of served pools when they change, or what they name does; and the pools themselves. */
export function wakeIronCoreMachines(watched: Watched, served: ReadonlySet<string>, queue: Queue): void {
  const { machines, pools, classes, volumes, networkInterfaces, networks, secrets, prefixes } = watched;
  const wake = (machine: IronCoreMachine): void => {
    if (!served.has(machine.spec.machinePoolRef?.name ?? '')) return;
    const priority = machines.hasSynced ? 'normal' : 'low';
    queue.add(ironCoreQueueKeyOf('machine', keyOf(machine)), isBeingDeleted(machine) ? 'high' : priority);
  };
  const wakeNamed = (index: string) => (old: KubeObject | undefined, current: KubeObject | undefined) => {
    const object = current ?? old;
    if (object !== undefined) for (const machine of machines.byIndex(index, keyOf(object))) wake(machine);
  };
  for (const pool of served) queue.add(ironCoreQueueKeyOf('pool', pool));
  machines.onChange((old, current) => {
    const pool = old?.spec.machinePoolRef?.name ?? '';
    // One that went without its finalizer has left its machine behind.
    if (current === undefined && served.has(pool)) queue.add(ironCoreQueueKeyOf('pool', pool));
    // Its status is mostly what was said here.
    if (current !== undefined && !isDeepStrictEqual(partsOf(old), partsOf(current))) wake(current);
  });
  pools.onChange((old, current) => {
    if (current === undefined || !served.has(current.metadata.name)) return;
    // Somebody may have allowed what is held.
    if (!isDeepStrictEqual(old?.metadata.annotations, current.metadata.annotations)) {
      queue.add(ironCoreQueueKeyOf('pool', current.metadata.name));
    }
    const isSame = old?.metadata.annotations?.[GIVE_UP] === current.metadata.annotations?.[GIVE_UP];
    if (old !== undefined && isSame) return;
    for (const machine of machines.byIndex('pool', current.metadata.name)) wake(machine);
  });
  classes.onChange(wakeNamed('class'));
  volumes.onChange(wakeNamed('volume'));
  networkInterfaces.onChange(wakeNamed('networkInterface'));
  secrets.onChange((old, current) => {
    const secret = current ?? old;
    if (secret === undefined) return;
    wakeNamed('secret')(old, current);
    for (const volume of volumes.byIndex('secret', keyOf(secret))) wakeNamed('volume')(undefined, volume);
  });
  prefixes.onChange((old, current) => {
    const prefix = current ?? old;
    const owner = prefix && controllerOf(prefix);
    if (prefix === undefined || owner === undefined) return;
    for (const machine of machines.byIndex('networkInterface', keyBeside(prefix, owner.name))) wake(machine);
  });
  networks.onChange((old, current) => {
    const network = current ?? old;
    for (const nic of networkInterfaces.list()) {
      if (network === undefined || nic.metadata.namespace !== network.metadata.namespace) continue;
      if (nic.spec?.networkRef?.name === network.metadata.name) wakeNamed('networkInterface')(undefined, nic);
    }
  });
}

function partsOf(machine: IronCoreMachine | undefined): unknown {
  if (machine === undefined) return undefined;
  const { deletionTimestamp, finalizers, labels, annotations = {}, uid } = machine.metadata;
  // They are written before each creation and deletion, or because nothing is done: it would be tried again at once.
  const {
    [CREATION_SENT_ANNOTATION]: _sent,
    [CREATION_SENT_TO_ANNOTATION]: _to,
    [DELETION_SENT_ANNOTATION]: _deletion,
    [MISSING_WITH_ANNOTATION]: _missing,
    ...others
  } = annotations;
  return { deletionTimestamp, finalizers, labels, annotations: others, uid, spec: machine.spec };
}
