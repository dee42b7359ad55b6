import { expect, test } from '@jest/globals';

import { CELL_TARGET_LABEL, CELL_WORKLOAD_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Lease } from '../../apis/wire.ts';
import { holderOf } from '../../kube/leader/lease.ts';
import { MemoryLeases, WITHOUT_MACHINES } from '../../../test/memory-leases.ts';
import { ClaimLeases } from './claim-leases.ts';
import { TargetClaims } from './target-claims.ts';
import { secretsOf, WorkloadClaims } from './workload-claims.ts';

const { signal } = new AbortController();
const NAME = 'machinist-target-u1';

/** Claims of namespaces whose Secrets are these, as `namespace/name`; of targets, those that are selected. */
function start() {
  const memory = new MemoryLeases();
  const secrets = new Set<string>();
  const selected = new Set<string>();
  const leases = new ClaimLeases({
    leases: memory,
    isNeeded: (lease) => {
      const isOfWorkload = secretsOf(lease.metadata).some((name) => secrets.has(`${holderOf(lease)}/${name}`));
      const isOfTarget = lease.metadata.labels?.[CELL_TARGET_LABEL] !== undefined && selected.has(holderOf(lease));
      return Promise.resolve(isOfWorkload || isOfTarget);
    },
  });
  const listBy = (label: string) => (namespace: string | undefined) => Promise.resolve(memory.by(label, namespace));
  const targets = new TargetClaims({
    leases,
    list: listBy(CELL_TARGET_LABEL),
    ...WITHOUT_MACHINES,
  });
  const workloads = new WorkloadClaims({ leases, list: listBy(CELL_WORKLOAD_LABEL) });
  const claim = async (uid: string, namespace: string, name: string): Promise<void> => {
    secrets.add(`${namespace}/${name}`);
    await workloads.claim(uid, { namespace, name }, signal);
  };
  const lease = (name = NAME): Lease | undefined => memory.stored.get(name);
  const names = (): readonly string[] => [...memory.stored.keys()].toSorted();
  return { secrets, selected, targets, workloads, claim, lease, names };
}

test('a workload cluster belongs to the first namespace while a Secret leads to it, and then to the next', async () => {
  const { secrets, claim, lease } = start();
  await claim('u1', 'a', 'c-kubeconfig');
  await claim('u1', 'a', 'c-kubeconfig');

  await expect(claim('u1', 'b', 'c-kubeconfig')).rejects.toMatchObject({
    event: 'TargetClusterTaken',
    message: expect.stringContaining('The cluster of Secret c-kubeconfig is that of another namespace, too'),
    forOperators: expect.stringContaining('The cluster of Secret c-kubeconfig is that of namespace a, too'),
  });
  secrets.delete('a/c-kubeconfig');
  await claim('u1', 'b', 'c-kubeconfig');

  expect(lease()?.spec?.holderIdentity).toBe('b');
  expect(lease()?.metadata.labels).toEqual({ [CELL_WORKLOAD_LABEL]: 'b' });
});

test('a namespace may have many, and one by several Secrets: it has it until the last of them is gone', async () => {
  const { secrets, claim, workloads, names, lease } = start();
  await claim('u1', 'a', 'c-kubeconfig');
  await claim('u1', 'a', 'd-kubeconfig');
  await claim('u2', 'a', 'e-kubeconfig');

  expect(secretsOf(lease()?.metadata ?? {})).toEqual(['c-kubeconfig', 'd-kubeconfig']);
  secrets.delete('a/c-kubeconfig');
  await expect(claim('u1', 'b', 'c-kubeconfig')).rejects.toMatchObject(takenBy('a'));
  await workloads.tidy(signal);
  expect(names()).toEqual([NAME, 'machinist-target-u2']);
  secrets.delete('a/d-kubeconfig');
  await workloads.tidy(signal);
  expect(names()).toEqual(['machinist-target-u2']);
});

test('what a Secret led to before is left to others, unless another Secret leads there, too', async () => {
  const { claim, names, lease } = start();
  await claim('u1', 'a', 'c-kubeconfig');
  await claim('u1', 'a', 'd-kubeconfig');

  await claim('u2', 'a', 'c-kubeconfig');
  expect(secretsOf(lease()?.metadata ?? {})).toEqual(['d-kubeconfig']);
  await claim('u2', 'a', 'd-kubeconfig');
  expect(names()).toEqual(['machinist-target-u2']);
});

test('Clusters that are gone leave no claims when the namespace gets another one', async () => {
  const { secrets, claim, names } = start();
  await claim('u1', 'a', 'c-kubeconfig');
  secrets.delete('a/c-kubeconfig');

  await claim('u2', 'a', 'd-kubeconfig');

  expect(names()).toEqual(['machinist-target-u2']);
});

test('no cluster is the target of one namespace and the workload cluster of another, but of one it may be both', async () => {
  const { selected, secrets, claim, targets, lease, names } = start();
  for (const namespace of ['a', 'b', 'c']) selected.add(namespace);
  await targets.claim('u1', 'a', signal);
  await claim('u2', 'b', 'c-kubeconfig');

  await expect(claim('u1', 'b', 'd-kubeconfig')).rejects.toMatchObject(takenBy('a'));
  await expect(targets.claim('u2', 'c', signal)).rejects.toMatchObject(takenBy('b'));
  await claim('u1', 'a', 'c-kubeconfig');
  expect(lease()?.metadata.labels).toEqual({ [CELL_TARGET_LABEL]: 'a', [CELL_WORKLOAD_LABEL]: 'a' });

  // Another target, and it is a workload cluster still.
  await targets.claim('u3', 'a', signal);
  expect(lease()?.metadata.labels).toEqual({ [CELL_WORKLOAD_LABEL]: 'a' });
  await targets.claim('u1', 'a', signal);
  expect(names()).toEqual([NAME, 'machinist-target-u2']);
  // No workload cluster any more, and the target still.
  secrets.delete('a/c-kubeconfig');
  await expect(claim('u1', 'b', 'd-kubeconfig')).rejects.toMatchObject(takenBy('a'));
});

test('who takes a claim over has none of the marks of the one before', async () => {
  const { secrets, selected, claim, targets, lease } = start();
  selected.add('a');
  await targets.claim('u1', 'a', signal);
  await claim('u1', 'a', 'c-kubeconfig');
  selected.delete('a');
  secrets.clear();

  await targets.claim('u1', 'b', signal);

  expect(lease()?.metadata.labels).toEqual({ [CELL_TARGET_LABEL]: 'b' });
  expect(secretsOf(lease()?.metadata ?? {})).toEqual([]);
});

const takenBy = (namespace: string): object => ({
  forOperators: expect.stringContaining(`is that of namespace ${namespace}, too`),
});
