import { expect, test } from '@jest/globals';

import { MemoryClient } from '../../../../test/memory-client.ts';
import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { IronCoreMachine } from '../api/machine.ts';
import type { IronCoreMachineClass } from '../api/machine-class.ts';
import { IRONCORE_MACHINE_INDEXES } from './indexes.ts';
import { ironCoreMachines } from '../api/resources.ts';
import { ClassLife } from './class-life.ts';

const NOW = '2026-01-01T00:00:00Z';
const OURS = 'compute.ironcore.dev/machineclass';
const never = new AbortController().signal;

function machineClass(finalizers: string[], isDeleting: boolean): IronCoreMachineClass {
  const deletion = isDeleting ? { deletionTimestamp: NOW } : {};
  const metadata = { name: 'c', uid: 'c', resourceVersion: '7', creationTimestamp: NOW, finalizers, ...deletion };
  return { metadata, capabilities: {} };
}

function machine(name: string, of = 'c'): IronCoreMachine {
  const metadata = { name, namespace: 'ns', uid: name, resourceVersion: '1', creationTimestamp: NOW };
  return { metadata, spec: { machineClassRef: { name: of } } };
}

interface Around {
  readonly cached?: readonly IronCoreMachine[];
  readonly live?: readonly IronCoreMachine[];
}

function lifeOf(one: IronCoreMachineClass, { cached = [], live = cached }: Around = {}) {
  const client = new MemoryClient();
  client.put(ironCoreMachines, ...live);
  const events: string[] = [];
  const life = new ClassLife({
    classes: new MemoryInformer([one]),
    machines: new MemoryInformer(cached, IRONCORE_MACHINE_INDEXES),
    reader: client,
    writer: client,
    classRecorder: { event: ({ reason, message }) => events.push(`${reason}: ${message}`) },
  });
  return { client, events, pass: () => life.reconcile('c', never) };
}

// promise: machines-ironcore/class-stays-last-machine
test.each<{ what: string; one: IronCoreMachineClass; around?: Around; writes: readonly string[][] }>([
  { what: 'is held beside what others hold', one: machineClass(['other'], false), writes: [['other', OURS]] },
  { what: 'that is held is let alone', one: machineClass([OURS], false), writes: [] },
  { what: 'that goes is not held any more', one: machineClass(['other'], true), writes: [] },
  { what: 'that goes unused is let go', one: machineClass(['other', OURS], true), writes: [['other']] },
  {
    what: 'that goes stays while Machines are of it',
    one: machineClass([OURS], true),
    around: { cached: [machine('m')] },
    writes: [],
  },
  {
    what: 'that goes stays for one that the cache has not heard of',
    one: machineClass([OURS], true),
    around: { cached: [], live: [machine('m')] },
    writes: [],
  },
  {
    what: 'that goes waits for Machines of other classes in no way',
    one: machineClass([OURS], true),
    around: { cached: [machine('m', 'other')] },
    writes: [[]],
  },
])('a class $what', async ({ one, around, writes }) => {
  const { client, pass } = lifeOf(one, around);

  await pass();

  expect(client.writes.map(({ body }) => (body as IronCoreMachineClass).metadata.finalizers)).toEqual(writes);
  expect(client.writes.map(({ resourceVersion }) => resourceVersion)).toEqual(writes.map(() => '7'));
});

test('a class whose deletion waits says once for whom', async () => {
  const users = ['f', 'e', 'd', 'c', 'b', 'a'].map((name) => machine(name));
  const { events, pass } = lifeOf(machineClass([OURS], true), { cached: users });

  await pass();
  await pass();

  expect(events).toEqual(['InUse: Its deletion waits for Machines: ns/a, ns/b, ns/c, ns/d, ns/e and 1 more']);
});
