import { describe, expect, test } from '@jest/globals';

import { machine, node } from '../../../test/builders.ts';
import { Store } from '../../kube/cache/store.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node } from '../../apis/wire.ts';
import { silentLogger } from '../../base/log/logger.ts';
import type { Target } from '../../kube/targets/targets.ts';
import { MACHINE_INDEXES } from '../../operator/indexes/machine-indexes.ts';
import { NodesInTarget } from './nodes-in-target.ts';

const READY = { type: 'Ready', status: 'True' };

class Fleet {
  readonly machines = new Store<Machine>(MACHINE_INDEXES);
  readonly nodes = new Map(['a', 'b'].map((cluster) => [cluster, new Store<Node>()]));
  readonly logged: string[] = [];
  readonly #targets = new Map(
    [...this.nodes].map(([cluster, nodes]) => [cluster, { cluster, nodes } as unknown as Target]),
  );
  readonly #nodesInTarget = new NodesInTarget({
    machines: this.machines,
    targets: { of: ({ metadata }) => this.#targets.get(metadata.namespace ?? '') },
    log: {
      ...silentLogger,
      warn: (_fields, message) => void this.logged.push(message),
      info: (_fields, message) => void this.logged.push(message),
    },
  });

  /** A Machine whose Node is in the cluster of the name of its namespace. */
  add(
    name: string,
    { cluster = 'a', hasJoined = true, deletionTimestamp = '', hasNode = false, shows = `sim:///${name}` } = {},
  ): void {
    this.machines.put(
      machine((m) => {
        Object.assign(m.metadata, { name, namespace: cluster, uid: name, labels: { node: name } });
        if (deletionTimestamp !== '') m.metadata.deletionTimestamp = deletionTimestamp;
        m.spec.providerID = `sim:///${name}`;
        m.status.conditions = hasJoined ? [READY] : [];
      }),
    );
    if (!hasNode) return;
    this.nodes.get(cluster)?.put(
      node((n) => {
        Object.assign(n.metadata, { name, labels: {} });
        n.spec.providerID = shows;
      }),
    );
  }

  /** Whether the Node of a Machine is missing with all others. */
  isMissing(name = 'm-0', cluster = 'a'): boolean {
    return this.#nodesInTarget.isMissingWithAll(this.machines.get(`${cluster}/${name}`) as Machine);
  }
}

const leaving = { deletionTimestamp: '2026-01-01T00:00:00Z' };

describe('the Nodes of all Machines', () => {
  test.each<{ what: string; machines: readonly Parameters<Fleet['add']>[1][]; is: boolean }>([
    { what: 'of one without its Node', machines: [{}], is: false },
    { what: 'of two without their Nodes', machines: [{}, {}], is: true },
    { what: 'of several, one of which is there', machines: [{}, {}, { hasNode: true }], is: false },
    { what: 'of one that has had a Node, beside new ones', machines: [{}, { hasJoined: false }], is: false },
    { what: 'of two, one of which is being deleted', machines: [{}, leaving], is: false },
    {
      what: 'of two, beside one that leaves and has its Node',
      machines: [{}, {}, { ...leaving, hasNode: true }],
      is: false,
    },
    { what: 'of two in different clusters', machines: [{}, { cluster: 'b' }], is: false },
    { what: 'of two, beside a Node of another cluster', machines: [{}, {}, { cluster: 'b', hasNode: true }], is: true },
  ])('are missing at once, $what: $is', ({ machines, is }) => {
    const fleet = new Fleet();
    for (const [i, one] of machines.entries()) fleet.add(`m-${i}`, one);

    expect(fleet.isMissing()).toBe(is);
  });

  test('are looked at anew when a Node or a Machine has come or gone, and what changes is logged once', () => {
    const fleet = new Fleet();
    fleet.add('m-0');
    const seen = [fleet.isMissing()];
    fleet.add('m-1');
    seen.push(fleet.isMissing(), fleet.isMissing());
    fleet.add('m-1', { hasNode: true });
    seen.push(fleet.isMissing(), fleet.isMissing());
    fleet.nodes.get('a')?.remove('m-1');
    seen.push(fleet.isMissing());

    expect(seen).toEqual([false, true, true, false, false, true]);
    expect(fleet.logged).toEqual([
      expect.stringContaining('none of the Nodes'),
      'replaces machines for their health again',
      expect.stringContaining('none of the Nodes'),
    ]);
  });

  test('do not count for a machine whose Node is there, though it does not show whose it is', () => {
    const fleet = new Fleet();
    fleet.add('m-0', { hasNode: true, shows: 'other:///x' });
    fleet.add('m-1');

    expect([fleet.isMissing('m-0'), fleet.isMissing('m-1')]).toEqual([false, true]);
  });

  test('tell nothing without a target cluster', () => {
    const fleet = new Fleet();
    fleet.add('m-0', { cluster: 'none' });
    fleet.add('m-1', { cluster: 'none' });

    expect(fleet.isMissing('m-0', 'none')).toBe(false);
  });
});
