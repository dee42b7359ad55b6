import { expect, test } from '@jest/globals';

import {
  machine,
  machineDeployment,
  machineSet,
  type BuiltMachineDeployment,
  type BuiltMachineSet,
} from '../../../test/builders.ts';
import { MemoryInformer } from '../../../test/memory-informer.ts';
import { API_VERSION } from '../../apis/machine/v1alpha1/group.ts';
import { CONTROLLER_INDEX, controllerIndex } from '../../operator/indexes/owner-index.ts';
import { controllerReference } from '../../work/reconcile/ownership.ts';
import { joinsRollout } from './rollout-hold.ts';

const INDEXES = { [CONTROLLER_INDEX]: controllerIndex };

test.each<{
  what: string;
  old?: (s: BuiltMachineSet) => void;
  change?: (d: BuiltMachineDeployment) => void;
  oldMachines?: number;
  want: boolean;
}>([
  { what: 'beside Machines of another template', want: true },
  { what: 'beside a set of another template that has none', oldMachines: 0, want: false },
  {
    what: 'beside a set of another template that is to keep none',
    old: (s) => void (s.spec.replicas = 0),
    want: false,
  },
  {
    what: 'beside a set of its own template',
    old: (s) => void (s.spec.template = machineDeployment().spec.template),
    want: false,
  },
  { what: 'that is paused', change: (d) => void (d.spec.paused = true), want: false },
  {
    what: 'that is being deleted',
    change: (d) => void (d.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'),
    want: false,
  },
])('a Machine of a MachineDeployment $what joins a rollout: $want', ({ old, change, oldMachines = 1, want }) => {
  const deployment = machineDeployment(change);
  const owners = [controllerReference(deployment, API_VERSION, 'MachineDeployment')];
  const sets = ['new', 'old'].map((name) =>
    machineSet((s) => {
      Object.assign(s.metadata, { name, uid: name, ownerReferences: owners });
      if (name === 'new') return;
      s.spec.template = { ...s.spec.template, metadata: { labels: { version: '1' } } };
      old?.(s);
    }),
  );
  const [own, ...others] = sets.flatMap((set, i) =>
    Array.from({ length: i === 0 ? 1 : oldMachines }, () =>
      machine((m) => {
        Object.assign(m.metadata, { name: `of-${set.metadata.name}`, uid: `of-${set.metadata.name}` });
        m.metadata.ownerReferences = [controllerReference(set, API_VERSION, 'MachineSet')];
      }),
    ),
  );
  if (own === undefined) throw new Error('there is one');
  const known = {
    owners: { sets: new MemoryInformer(sets, INDEXES), deployments: new MemoryInformer([deployment]) },
    machines: new MemoryInformer([own, ...others], INDEXES),
  };

  expect(joinsRollout(own, known)).toBe(want);
});
