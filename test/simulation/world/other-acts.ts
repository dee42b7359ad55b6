import {
  DELETION_POLICY_ANNOTATION,
  MAINTENANCE_ANNOTATION,
  PREPARE_DELETION_ANNOTATION,
  PRESERVE_ANNOTATION,
} from '../../../pkg/apis/machine/v1alpha1/labels.ts';
import { fromTimestamp } from '../../../pkg/base/clock/clock.ts';
import type { Random } from '../../../pkg/base/random/random.ts';
import type { ActTable } from './acts.ts';
import type { MachinesWorld } from './machines-world.ts';
import { integerIn, oneOf } from './seeded-random.ts';
import { isPrepared, preparedSinceMs } from './wishes.ts';

/** After this time somebody looks at a deletion, or its preparation, whose drain does not come to its end. */
const STUCK_MS = 15 * 60_000;
/** What is forced leaves a VM behind, which is found where somebody looks for such. */
const POLICIES = ['graceful', 'unsafe', 'forced'];

/** What users do to a pool beside what changes its size and template, and only in some worlds. */
export const OTHER_ACTS = {
  preserve: (world, _ledger, random) => {
    const value = random() < 0.75 ? oneOf(random, ['now', 'when-failed', 'when-failed', 'false']) : null;
    annotateMachineOrNode(world, random, PRESERVE_ANNOTATION, value);
  },
  preserveFailed: (world, _ledger, random) =>
    world.changePool({ spec: { autoPreserveFailedMachineMax: integerIn(random, 0, 2) } }),
  maintain: (world, _ledger, random) => {
    const value = random() < 0.6 ? 'true' : oneOf(random, ['false', null]);
    annotateMachineOrNode(world, random, MAINTENANCE_ANNOTATION, value);
  },
  deletionPolicy: (world, _ledger, random) => {
    const policies = world.isHonest ? POLICIES.slice(0, 2) : POLICIES;
    const value = random() < 0.75 ? oneOf(random, policies) : null;
    const annotations = { [DELETION_POLICY_ANNOTATION]: value };
    if (random() < 0.4) world.changePool({ metadata: { annotations } });
    else annotateMachine(world, random, annotations);
  },
  recreate: (world) => world.changePool({ spec: { strategy: { type: 'Recreate', rollingUpdate: null } } }),
  prepareDeletion: (world, _ledger, random) =>
    annotateMachine(world, random, { [PREPARE_DELETION_ANNOTATION]: random() < 0.7 ? 'true' : null }),
} satisfies ActTable;

/** Names of those acts. */
export const OTHER_ACT_NAMES = Object.keys(OTHER_ACTS) as (keyof typeof OTHER_ACTS)[];

function annotateMachine(world: MachinesWorld, random: Random, annotations: object): void {
  if (world.machines.length === 0) return;
  annotate(world, 'machines', oneOf(random, world.machines).metadata.name, annotations);
}

function annotateMachineOrNode(world: MachinesWorld, random: Random, key: string, value: string | null): void {
  if (random() < 0.5) return annotateMachine(world, random, { [key]: value });
  if (world.nodes.length > 0) annotate(world, 'nodes', oneOf(random, world.nodes).metadata.name, { [key]: value });
}

function annotate(world: MachinesWorld, plural: 'machines' | 'nodes', name: string, annotations: object): void {
  const body = { metadata: { annotations } };
  if (plural === 'nodes') world.act('PATCH', `/api/v1/nodes/${name}`, body, 'target');
  else world.act('PATCH', world.pathOf(plural, name), body);
}

/** Users end what keeps machines from being replaced, or from being available. */
export function takeBack(world: MachinesWorld): void {
  const keys = [PRESERVE_ANNOTATION, MAINTENANCE_ANNOTATION];
  for (const plural of ['machines', 'nodes'] as const) {
    for (const { metadata } of world[plural]) {
      const there = keys.filter((key) => metadata.annotations?.[key] !== undefined);
      if (there.length === 0) continue;
      annotate(world, plural, metadata.name, Object.fromEntries(there.map((key) => [key, null])));
    }
  }
  const { autoPreserveFailedMachineMax = 0 } = world.pool?.spec ?? {};
  if (autoPreserveFailedMachineMax > 0) world.changePool({ spec: { autoPreserveFailedMachineMax: 0 } });
}

/** Somebody does what the status of a deletion asks for, or of its preparation, when its drain takes too long. */
export function freeStuck(world: MachinesWorld): void {
  const isStuck = (sinceMs = Infinity): boolean => world.time.epochMs - sinceMs > STUCK_MS;
  const inherited = world.pool?.metadata.annotations?.[DELETION_POLICY_ANNOTATION];
  for (const machine of world.machines) {
    const { name, deletionTimestamp, annotations } = machine.metadata;
    const isGraceful = (annotations?.[DELETION_POLICY_ANNOTATION] ?? inherited) === 'graceful';
    if (isGraceful && isStuck(fromTimestamp(deletionTimestamp)))
      annotate(world, 'machines', name, { [DELETION_POLICY_ANNOTATION]: 'unsafe' });
    if (isPrepared(machine) && deletionTimestamp === undefined && isStuck(preparedSinceMs(machine)))
      annotate(world, 'machines', name, { [PREPARE_DELETION_ANNOTATION]: null });
  }
}
