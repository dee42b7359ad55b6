import { expect, test } from '@jest/globals';

import { CELL_TARGET_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import { MemoryLeases, WITHOUT_MACHINES } from '../../../test/memory-leases.ts';
import { ClaimLeases, type ClaimLeasesOptions } from './claim-leases.ts';
import { holderOf } from '../../kube/leader/lease.ts';
import { TargetRefusedError } from '../target-refused-error.ts';
import type { NodesOfCell } from './nodes-of-cell.ts';
import { ALL_NAMESPACES, TargetClaims } from './target-claims.ts';

const { signal } = new AbortController();
const UID = 'A1-b2';
const NAME = 'machinist-target-a1-b2';

/** Leases, and how they are listed. */
function memory() {
  const leases = new MemoryLeases();
  const list = (namespace: string | undefined) => Promise.resolve(leases.by(CELL_TARGET_LABEL, namespace));
  return { leases, stored: leases.stored, list };
}

/** Claims that are needed by these namespaces. */
function claimsOf(
  leases: ClaimLeasesOptions['leases'],
  isNeededBy: (namespace: string) => boolean | 'unknown',
): ClaimLeases {
  return new ClaimLeases({ leases, isNeeded: (lease) => Promise.resolve(isNeededBy(holderOf(lease))) });
}

function start(needed: ReadonlySet<string>, withMachines: ReadonlySet<string> = new Set()) {
  const { stored, leases, list } = memory();
  const state = {
    ...WITHOUT_MACHINES.replicas,
    found: new Set<string>(),
    withoutNodes: new Set<string>(),
    /** Where the Nodes of cells are, as it is known, and is found out. */
    nodes: new Map<string, NodesOfCell>(),
    present: new Map<string, NodesOfCell>(),
    movesTo: new Map<string, string>(),
  };
  const claims = new TargetClaims({
    leases: claimsOf(leases, (namespace) => (namespace === 'unknown' ? namespace : needed.has(namespace))),
    list,
    hasMachines: (namespace) => withMachines.has(namespace),
    withMachines: () => [...withMachines],
    findMachines: (namespace) =>
      Promise.resolve(namespace === undefined ? state.found.size > 0 : state.found.has(namespace)),
    hasNodes: (namespace) => withMachines.has(namespace) && !state.withoutNodes.has(namespace),
    common: {
      cells: () => [...needed],
      nodesOf: (namespace) => state.nodes.get(namespace) ?? 'none',
      async untilPresent() {
        for (const [namespace, nodes] of state.present) state.nodes.set(namespace, nodes);
      },
      mayMoveTo: (uid, namespace) => state.movesTo.get(namespace) === uid,
    },
    replicas: state,
  });
  const holder = (): string | undefined => stored.get(NAME)?.spec?.holderIdentity;
  return { claims, holder, stored, leases, list, state };
}

test('the first namespace gets a target cluster, as often as it asks', async () => {
  const { claims, holder } = start(new Set(['a']));

  await claims.claim(UID, 'a', signal);
  await claims.claim(UID, 'a', signal);

  expect(holder()).toBe('a');
});

test('another namespace does not get it while the first one needs it, and gets it afterwards', async () => {
  const needed = new Set(['a', 'b']);
  const { claims, holder } = start(needed);
  await claims.claim(UID, 'a', signal);

  await expect(claims.claim(UID, 'b', signal)).rejects.toThrow(TargetRefusedError);
  await expect(claims.claim(UID, 'b', signal)).rejects.toMatchObject({
    message: expect.stringContaining('that of another namespace, too'),
    forOperators: expect.stringContaining('that of namespace a, too'),
  });
  needed.delete('a');
  await claims.claim(UID, 'b', signal);

  expect(holder()).toBe('b');
});

test('of two that take over the same claim at once, one is refused by the API server', async () => {
  const { claims, leases, list, holder } = start(new Set(['b', 'c']));
  await claims.claim(UID, 'gone', signal);
  const before = await leases.get(NAME);
  const late = new TargetClaims({
    leases: claimsOf(
      {
        get: () => Promise.resolve(before),
        create: (lease) => leases.create(lease),
        replace: (lease) => leases.replace(lease),
        delete: (lease) => leases.delete(lease),
      },
      () => false,
    ),
    list,
    ...WITHOUT_MACHINES,
  });
  await claims.claim(UID, 'b', signal);

  await expect(late.claim(UID, 'c', signal)).rejects.toMatchObject({ code: 409 });
  expect(holder()).toBe('b');
});

test('claims of namespaces that need their cluster no longer are deleted, others are not', async () => {
  const { claims, stored, leases, list } = start(new Set(['a']));
  await claims.claim(UID, 'a', signal);
  await claims.claim('c3', 'gone', signal);
  const before = await list(undefined);
  const late = new TargetClaims({
    leases: claimsOf(leases, (name) => name === 'a'),
    list: () => Promise.resolve(before),
    ...WITHOUT_MACHINES,
  });

  await claims.tidy(signal);
  // Deleted by another replica meanwhile.
  await late.tidy(signal);

  expect([...stored.keys()]).toEqual([NAME]);
});

test('a namespace whose kubeconfig is corrected leaves the cluster that it named by mistake to another one', async () => {
  const { claims, holder, stored } = start(new Set(['a', 'b']));
  await claims.claim(UID, 'b', signal);
  await expect(claims.claim(UID, 'a', signal)).rejects.toThrow(TargetRefusedError);

  await claims.claim('c3', 'b', signal);
  await claims.claim(UID, 'a', signal);

  expect(holder()).toBe('a');
  expect(stored.get('machinist-target-c3')?.spec?.holderIdentity).toBe('b');
});

test('a claim that is taken again is not deleted by whoever found before that nobody needed it', async () => {
  const needed = new Set<string>();
  const { claims, holder, stored, leases, list } = start(needed);
  await claims.claim(UID, 'a', signal);
  const before = await list(undefined);
  const late = new TargetClaims({
    leases: claimsOf(leases, () => false),
    list: () => Promise.resolve(before),
    ...WITHOUT_MACHINES,
  });

  needed.add('a');
  await claims.claim(UID, 'a', signal);
  await late.tidy(signal);

  expect([...stored.keys()]).toEqual([NAME]);
  expect(holder()).toBe('a');
});

test('two namespaces whose kubeconfigs were mixed up get their own clusters when both are corrected', async () => {
  const { claims, holder, stored } = start(new Set(['a', 'b']));
  await claims.claim(UID, 'b', signal);
  await claims.claim('c3', 'a', signal);

  // Each is tried again until it gets what it asks for.
  await claims.claim(UID, 'a', signal).catch(() => undefined);
  await claims.claim('c3', 'b', signal);
  await claims.claim(UID, 'a', signal);

  expect(holder()).toBe('a');
  expect(stored.get('machinist-target-c3')?.spec?.holderIdentity).toBe('b');
});

test('a cluster that was taken over is left like another', async () => {
  const { claims, stored } = start(new Set(['b']));
  await claims.claim(UID, 'gone', signal);
  await claims.claim(UID, 'b', signal);

  await claims.claim('c3', 'b', signal);

  expect([...stored.keys()]).toEqual(['machinist-target-c3']);
});

test('a namespace with Machines gets no other target cluster, unless the Lease of the one that it has is deleted', async () => {
  const machines = new Set(['a']);
  const { claims, holder, stored } = start(new Set(['a', 'b']), machines);
  await claims.claim(UID, 'a', signal);

  await expect(claims.claim('c3', 'a', signal)).rejects.toMatchObject({
    event: 'TargetClusterChanged',
    message: expect.stringContaining(`delete Lease ${NAME} in namespace ns`),
  });
  await claims.claim(UID, 'a', signal);
  expect(holder()).toBe('a');
  expect([...stored.keys()]).toEqual([NAME]);

  stored.delete(NAME);
  await claims.claim('c3', 'a', signal);
  expect([...stored.keys()]).toEqual(['machinist-target-c3']);
});

test('a claim of a namespace of which it is unknown whether it is needed stays, and the refusal says how to take it away', async () => {
  const { claims, holder } = start(new Set());
  await claims.claim(UID, 'unknown', signal);

  await claims.tidy(signal);

  await expect(claims.claim(UID, 'other', signal)).rejects.toThrow(
    /^Its target cluster is that of another namespace, too: .*; or, if that namespace is gone, or has no Machines, delete Lease machinist-target-a1-b2 in namespace ns\.$/,
  );
  expect(holder()).toBe('unknown');
});

test('a namespace whose machines have Nodes in a target cluster of its own is not given that of all cells', async () => {
  const withMachines = new Set(['a']);
  const { claims, stored, state } = start(new Set(['a']), withMachines);
  await claims.requireNone('a', signal);
  await claims.claim(UID, 'a', signal);

  await expect(claims.requireNone('a', signal)).rejects.toThrow(
    `if it is the same cluster, delete Lease ${NAME} in namespace ns; or, if they are to be replaced, do so, and set annotation`,
  );
  await claims.requireNone('b', signal);
  expect(stored.has(NAME)).toBe(true);
  withMachines.clear();
  state.found.add('a');
  await expect(claims.requireNone('a', signal)).rejects.toThrow(`delete Lease ${NAME}`);
  state.found.clear();
  await claims.requireNone('a', signal);

  expect(stored.has(NAME)).toBe(false);
});

test('a target cluster of all namespaces is claimed once for all of them, and again by another process', async () => {
  const { claims, holder, stored } = start(new Set(['a']), new Set(['a', 'b']));

  await claims.claimForAll(UID, signal);
  await claims.claimForAll(UID, signal);

  expect(holder()).toBe(ALL_NAMESPACES);
  expect(stored.get(NAME)?.metadata.labels).toEqual({ [CELL_TARGET_LABEL]: '' });
});

test('all namespaces get no other target cluster while any has Machines, unless the Lease of the one that they have is deleted', async () => {
  const machines = new Set(['a', 'b', 'c', 'd', 'e']);
  const { claims, stored } = start(new Set(['a']), machines);
  await claims.claimForAll(UID, signal);

  await expect(claims.claimForAll('c3', signal)).rejects.toMatchObject({
    event: 'TargetClusterChanged',
    message: expect.stringMatching(
      `^--target-kubeconfig leads to another target cluster than before: the Machines would all be replaced.* stop all replicas and delete Lease ${NAME} in namespace ns, and set annotation machine.sapcloud.io/cell-moves-to of each namespace with Machines to c3\\.$`,
    ),
    forOperators: expect.stringContaining('than before: the Machines of namespaces a, b, c, 2 more would all'),
  });
  expect([...stored.keys()]).toEqual([NAME]);

  machines.clear();
  await claims.claimForAll('c3', signal);
  expect([...stored.keys()]).toEqual(['machinist-target-c3']);
  machines.add('a');
  stored.clear();
  await claims.claimForAll(UID, signal);
  expect([...stored.keys()]).toEqual([NAME]);
});

test('the target cluster of all namespaces is not changed while replicas of another revision may have the one before', async () => {
  const { claims, stored, state } = start(new Set());
  await claims.claimForAll(UID, signal);
  state.areSettled = false;

  await expect(claims.claimForAll('c3', signal)).rejects.toMatchObject({ code: 503 });
  await claims.claimForAll(UID, signal);
  expect([...stored.keys()]).toEqual([NAME]);

  state.areSettled = true;
  // One that the cache does not show yet.
  state.found.add('a');
  await expect(claims.claimForAll('c3', signal)).rejects.toMatchObject({ code: 503 });
  state.found.clear();
  await claims.claimForAll('c3', signal);
  expect([...stored.keys()]).toEqual(['machinist-target-c3']);
});

test('no target cluster is claimed for all namespaces while replicas of another revision may use one without a claim', async () => {
  const { claims, stored, state } = start(new Set());
  state.haveOneTarget = false;

  await expect(claims.claimForAll(UID, signal)).rejects.toMatchObject({ code: 503 });
  expect(stored.size).toBe(0);

  state.haveOneTarget = true;
  state.areSettled = false;
  await claims.claimForAll(UID, signal);
  state.haveOneTarget = false;
  await claims.claimForAll(UID, signal);
  expect([...stored.keys()]).toEqual([NAME]);
});

test('of two processes that claim different clusters for all namespaces at once, not both go on', async () => {
  const { leases, list, stored } = memory();
  const arrived = Promise.withResolvers<void>();
  let lists = 0;
  const claimsOfOne = (): TargetClaims =>
    new TargetClaims({
      leases: claimsOf(leases, () => true),
      // Both have listed before either has claimed.
      list: async (namespace) => {
        const found = await list(namespace);
        lists += 1;
        if (lists === 2) arrived.resolve();
        if (lists <= 2) await arrived.promise;
        return found;
      },
      hasMachines: () => true,
      withMachines: () => ['a'],
      findMachines: () => Promise.resolve(false),
      hasNodes: () => false,
      common: WITHOUT_MACHINES.common,
      replicas: WITHOUT_MACHINES.replicas,
    });

  const ended = await Promise.allSettled([
    claimsOfOne().claimForAll(UID, signal),
    claimsOfOne().claimForAll('c3', signal),
  ]);

  const won = ended.filter(({ status }) => status === 'fulfilled');
  expect(won.length).toBeLessThanOrEqual(1);
  expect(stored.size).toBe(won.length);
});

test('a cluster that one namespace has is not made that of all of them, until that needs it no longer', async () => {
  const needed = new Set(['a']);
  const { claims, holder } = start(needed, new Set(['a']));
  await claims.claim(UID, 'a', signal);

  await expect(claims.claimForAll(UID, signal)).rejects.toMatchObject({
    event: 'TargetClusterTaken',
    message: expect.stringContaining('workload cluster of another namespace'),
    forOperators: expect.stringContaining('workload cluster of namespace a'),
  });
  needed.clear();
  await claims.claimForAll(UID, signal);

  expect(holder()).toBe(ALL_NAMESPACES);
});

test('what was the target cluster of all namespaces is not that of one of them, while any may have Machines there', async () => {
  const needed = new Set([ALL_NAMESPACES]);
  const { claims, holder } = start(needed, new Set(['a']));
  await claims.claimForAll(UID, signal);

  await expect(claims.claim(UID, 'a', signal)).rejects.toMatchObject({
    event: 'TargetClusterTaken',
    message: expect.stringContaining('Its target cluster is that of all namespaces'),
  });
  needed.clear();
  await claims.claim(UID, 'a', signal);

  expect(holder()).toBe('a');
});

test('a namespace with Machines leaves the target cluster of all namespaces for no other one; one without Machines does', async () => {
  const { claims, stored } = start(new Set(['a', 'b', ALL_NAMESPACES]), new Set(['a']));
  await claims.claimForAll(UID, signal);

  await expect(claims.claim('c3', 'a', signal)).rejects.toMatchObject({
    event: 'TargetClusterChanged',
    message: expect.stringMatching(
      `if no Machines of any namespace have Nodes there, stop all replicas and delete Lease ${NAME}`,
    ),
  });
  await claims.claim('c3', 'b', signal);
  stored.delete(NAME);
  await claims.claim('d4', 'a', signal);

  expect([...stored.keys()]).toEqual(['machinist-target-c3', 'machinist-target-d4']);
});

test('a claim of all namespaces of which nobody knows whether they have Machines there says how to take it away', async () => {
  const { leases, list } = memory();
  const claims = new TargetClaims({
    leases: claimsOf(leases, () => 'unknown'),
    list,
    ...WITHOUT_MACHINES,
  });
  await claims.claimForAll(UID, signal);

  await expect(claims.claim(UID, 'a', signal)).rejects.toThrow(`delete Lease ${NAME} in namespace ns`);
});

test('a namespace whose Machines have Nodes in a target cluster is not managed without one, also if no Lease says in which, until it says so', async () => {
  const { claims, state } = start(new Set(['a', 'b']), new Set(['a', 'b']));
  // A manager that never had a target cluster.
  state.withoutNodes.add('b');

  await claims.requireNoNodes('b');
  await expect(claims.requireNoNodes('a')).rejects.toThrow(
    /^Its Machines have Nodes .*; or, if that is meant, set annotation machine\.sapcloud\.io\/cell-moves-to of the namespace to none\.$/,
  );
  await claims.claim(UID, 'a', signal);
  state.movesTo.set('a', UID);
  await expect(claims.requireNoNodes('a')).rejects.toThrow('of the namespace to none');
  state.movesTo.set('a', 'none');
  await claims.requireNoNodes('a');
});

test('whether a cluster is that of all namespaces is seen by its Lease, and by no other being there', async () => {
  const { claims, stored, leases } = start(new Set());
  expect(await claims.isOfAll(UID, [], signal)).toBe(false);
  await claims.claimForAll(UID, signal);
  expect(await claims.isOfAll(UID.toLowerCase(), [], signal)).toBe(true);
  expect(await claims.isOfAll('c3', [], signal)).toBe(false);

  await leases.create({
    metadata: { name: 'machinist-target-c3', labels: { [CELL_TARGET_LABEL]: '' } },
    spec: { holderIdentity: ALL_NAMESPACES },
  });
  expect(stored.size).toBe(2);
  expect(await claims.isOfAll(UID, [], signal)).toBe(false);
});

test('a namespace whose machines have their Nodes in another cluster, of which no Lease tells, is not managed with that of all', async () => {
  const { claims, state } = start(new Set(['a', 'b']), new Set(['a', 'b']));
  state.nodes.set('a', 'here');
  state.nodes.set('b', 'elsewhere');
  await claims.claimForAll(UID, signal);

  await claims.requireNodes(UID, 'a', signal);
  await claims.requireNodes(UID, 'without-machines', signal);
  await expect(claims.requireNodes(UID, 'b', signal)).rejects.toMatchObject({
    event: 'TargetClusterChanged',
    message: `None of the Nodes that its Machines have, or had, is in the cluster of --target-kubeconfig: they would all be replaced. Correct the flag, if that of another manager is meant; or, if they are to be replaced, set annotation machine.sapcloud.io/cell-moves-to of the namespace to ${UID}.`,
  });
  // They have just joined.
  state.present.set('b', 'here');
  await claims.requireNodes(UID, 'b', signal);
});

test('a namespace that was managed with the cluster of all begins also when none of its Nodes is left', async () => {
  const { claims, state } = start(new Set(['a', 'b']), new Set(['a']));
  await claims.claimForAll(UID, signal);
  await claims.join(UID, ['a'], signal);
  await claims.join(UID, ['a', 'b'], signal);
  state.nodes.set('a', 'elsewhere');

  await claims.requireNodes(UID, 'a', signal);

  expect(await claims.isOfAll(UID, ['a', 'b'], signal)).toBe(true);
  expect(await claims.isOfAll(UID, ['a', 'c'], signal)).toBe(false);
});

test('a namespace whose machines are to move begins without a Node of theirs', async () => {
  const { claims, state } = start(new Set(['a']), new Set(['a']));
  state.nodes.set('a', 'elsewhere');
  await expect(claims.claimForAll(UID, signal)).rejects.toMatchObject({ event: 'TargetClusterChanged' });

  state.movesTo.set('a', 'c3');
  await expect(claims.requireNodes(UID, 'a', signal)).rejects.toMatchObject({ event: 'TargetClusterChanged' });
  state.movesTo.set('a', UID);
  await claims.claimForAll(UID, signal);
  await claims.requireNodes(UID, 'a', signal);
});

test('which namespaces were managed with the cluster of all is forgotten of those that are cells no more, and with the claim', async () => {
  const cells = new Set(['a', 'b', ALL_NAMESPACES]);
  const { claims, stored } = start(cells);
  await claims.claimForAll(UID, signal);
  await claims.join(UID, ['a', 'b'], signal);
  const members = (): readonly string[] => Object.keys(stored.get(NAME)?.metadata.annotations ?? {});
  expect(members()).toEqual(['a', 'b'].map((name) => `cell-member.machine.sapcloud.io/${name}`));

  cells.delete('b');
  await claims.tidy(signal);
  expect(members()).toEqual(['cell-member.machine.sapcloud.io/a']);

  cells.delete(ALL_NAMESPACES);
  await claims.claim(UID, 'a', signal);
  expect(members()).toEqual([]);
});

test('a namespace that is a cell no more when it is written down as managed with the cluster of all is forgotten', async () => {
  const cells = new Set(['a', 'b', ALL_NAMESPACES]);
  const { claims, leases, stored, list } = start(cells);
  await claims.claimForAll(UID, signal);
  const late = new TargetClaims({
    ...WITHOUT_MACHINES,
    leases: claimsOf(
      {
        get: (name) => leases.get(name),
        create: (lease) => leases.create(lease),
        async replace(lease) {
          // Whoever is told of that sees no such member yet.
          if (cells.delete('b')) await claims.tidy(signal);
          return await leases.replace(lease);
        },
        delete: (lease) => leases.delete(lease),
      },
      () => true,
    ),
    list,
    common: { ...WITHOUT_MACHINES.common, cells: () => [...cells] },
  });

  await late.join(UID, ['a', 'b'], signal);

  expect(Object.keys(stored.get(NAME)?.metadata.annotations ?? {})).toEqual(['cell-member.machine.sapcloud.io/a']);
});

test('a Lease that somebody deletes is made again by who has had the cluster, also beside replicas with another one; these take none where the machines have no Node', async () => {
  const { claims, stored, state } = start(new Set(['a', 'b']), new Set(['a', 'b']));
  await claims.claimForAll(UID, signal);
  stored.clear();
  state.haveOneTarget = false;
  await expect(claims.claimForAll('c3', signal)).rejects.toMatchObject({ code: 503 });

  // The one that knows better has ended.
  state.haveOneTarget = true;
  state.nodes.set('a', 'elsewhere').set('b', 'elsewhere');
  await expect(claims.claimForAll('c3', signal)).rejects.toMatchObject({
    event: 'TargetClusterChanged',
    message: expect.stringMatching(
      /that Machines of the namespaces that the log of the manager names have, .* of each namespace concerned to c3\. One .* removing its label\.$/,
    ),
    forOperators: expect.stringContaining('Machines of namespaces a, b have, or had, is in that of'),
  });
  expect(stored.size).toBe(0);

  state.haveOneTarget = false;
  await claims.claimForAll(UID, signal, true);
  expect([...stored.keys()]).toEqual([NAME]);
});

test('a first claim is made beside a namespace that has a target cluster of its own', async () => {
  const { claims, holder, state } = start(new Set(['a', 'b']), new Set(['a', 'b']));
  state.nodes.set('a', 'elsewhere');
  await claims.claim('c3', 'a', signal);

  await claims.claimForAll(UID, signal);

  expect(holder()).toBe(ALL_NAMESPACES);
});

test('a first claim is made while one namespace has a Node there', async () => {
  const { claims, stored, state } = start(new Set(['a', 'b']), new Set(['a', 'b']));
  state.nodes.set('a', 'elsewhere').set('b', 'elsewhere');
  state.present.set('b', 'here');

  await claims.claimForAll(UID, signal);

  expect([...stored.keys()]).toEqual([NAME]);
});
