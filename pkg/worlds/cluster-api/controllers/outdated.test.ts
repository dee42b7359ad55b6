import { expect, test } from '@jest/globals';

import type { ContractReference } from '../api/contract.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { ExternalLookup } from './externals.ts';
import { isOutdated, revisionOwnersOf } from './outdated.ts';

const object = (name: string, owner?: string, revision?: string): KubeObject => ({
  metadata: {
    name,
    uid: name,
    resourceVersion: '1',
    creationTimestamp: '',
    ...(owner !== undefined && {
      ownerReferences: [{ apiVersion: 'cluster.x-k8s.io/v1beta2', kind: owner, name: 'o', uid: 'o' }],
    }),
    ...(revision !== undefined && { annotations: { 'machinedeployment.clusters.x-k8s.io/revision': revision } }),
  },
});
const found = (one: KubeObject): ExternalLookup => ({ kind: 'found', object: one }) as ExternalLookup;
const set = (revision?: string): ExternalLookup => found(object('s', 'MachineDeployment', revision));
const deployment = (revision?: string): ExternalLookup => found(object('d', undefined, revision));
const ABSENT: ExternalLookup = { kind: 'absent' };
const UNKNOWN: ExternalLookup = { kind: 'unknown', problem: 'p' };

test.each<{
  what: string;
  owner?: string;
  sets?: ExternalLookup;
  deployments?: ExternalLookup;
  names: number;
  want: boolean | undefined;
}>([
  { what: 'without a MachineSet', owner: 'Other', names: 0, want: false },
  { what: 'whose MachineSet is gone', sets: ABSENT, names: 1, want: false },
  { what: 'whose MachineSet cannot be read', sets: UNKNOWN, names: 1, want: undefined },
  { what: 'whose MachineSet is alone', sets: found(object('s')), names: 1, want: false },
  { what: 'whose MachineDeployment is gone', sets: set('1'), deployments: ABSENT, names: 2, want: false },
  { what: 'whose MachineDeployment cannot be read', sets: set('1'), deployments: UNKNOWN, names: 2, want: undefined },
  { what: 'of an older revision', sets: set('9'), deployments: deployment('10'), names: 2, want: true },
  { what: 'of this revision', sets: set('10'), deployments: deployment('10'), names: 2, want: false },
  {
    what: 'of a newer one, as the cache has it',
    sets: set('11'),
    deployments: deployment('10'),
    names: 2,
    want: false,
  },
  { what: 'of the time before revisions', sets: set(), deployments: deployment('1'), names: 2, want: true },
  { what: 'of no number', sets: set('x'), deployments: deployment('1'), names: 2, want: undefined },
])(
  'a Machine $what is outdated: $want',
  ({ owner = 'MachineSet', sets = ABSENT, deployments = ABSENT, names, want }) => {
    const find = ({ kind }: ContractReference): ExternalLookup => (kind === 'MachineSet' ? sets : deployments);
    const machine = object('m', owner);

    expect(isOutdated(machine, find)).toBe(want);
    expect(revisionOwnersOf(machine, find)).toHaveLength(names);
  },
);
