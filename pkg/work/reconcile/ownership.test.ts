import { describe, expect, test } from '@jest/globals';

import type { KubeObject, LabelSelector, OwnerReference } from '../../apis/meta.ts';
import { adoptPatch, claimOf, controllerReference, releasePatch, sortByClaim } from './ownership.ts';

const OURS = 'uid-set';
const ours = owner('uid-set', true);
const foreign = owner('uid-other', true);
const plain = owner('uid-plain', false);

function owner(uid: string, controller: boolean): OwnerReference {
  return { apiVersion: 'v1', kind: 'Some', name: uid, uid, controller };
}

function set(options: { deleting?: boolean } = {}) {
  const deletion = options.deleting === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
  return {
    metadata: { name: 'set', namespace: 'ns', uid: OURS, resourceVersion: '1', creationTimestamp: '', ...deletion },
    spec: { selector: { matchLabels: { pool: 'a' } } },
  };
}

function machine(options: {
  refs?: OwnerReference[];
  pool?: string;
  deleting?: boolean;
  namespace?: string;
}): KubeObject {
  const { refs, pool = 'a', deleting, namespace = 'ns' } = options;
  return {
    metadata: {
      name: 'm-1',
      namespace,
      uid: 'uid-m-1',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { pool },
      ...(refs === undefined ? {} : { ownerReferences: refs }),
      ...(deleting === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
  };
}

const isPoolA = (labels: Readonly<Record<string, string>> | undefined): boolean => labels?.['pool'] === 'a';

describe('claiming', () => {
  test.each([
    { what: 'controlled by another', object: { refs: [foreign] }, alive: 'skip', dying: 'skip' },
    {
      what: 'controlled by another, not selected',
      object: { refs: [foreign], pool: 'b' },
      alive: 'skip',
      dying: 'skip',
    },
    { what: 'ours, selected', object: { refs: [ours] }, alive: 'claimed', dying: 'claimed' },
    {
      what: 'ours, selected, being deleted',
      object: { refs: [ours], deleting: true },
      alive: 'claimed',
      dying: 'claimed',
    },
    { what: 'ours, not selected', object: { refs: [ours], pool: 'b' }, alive: 'release', dying: 'skip' },
    { what: 'without owner, selected', object: {}, alive: 'adopt', dying: 'skip' },
    { what: 'with a plain owner, selected', object: { refs: [plain] }, alive: 'adopt', dying: 'skip' },
    { what: 'without owner, selected, being deleted', object: { deleting: true }, alive: 'skip', dying: 'skip' },
    { what: 'without owner, not selected', object: { pool: 'b' }, alive: 'skip', dying: 'skip' },
  ] as const)('$what: $alive, and $dying while the owner is being deleted', ({ object, alive, dying }) => {
    const candidate = machine({ ...object, ...('refs' in object ? { refs: [...object.refs] } : {}) } as never);

    expect(claimOf(set(), candidate, isPoolA)).toBe(alive);
    expect(claimOf(set({ deleting: true }), candidate, isPoolA)).toBe(dying);
  });

  test.each<{ what: string; selector: LabelSelector | undefined }>([
    { what: 'missing', selector: undefined },
    { what: 'malformed', selector: { matchExpressions: [{ key: 'pool', operator: 'In' }] } },
  ])('a $what selector adopts nothing and releases nothing', ({ selector }) => {
    const mine = machine({ refs: [ours], pool: 'b' });
    const unreadable = { ...set(), spec: selector === undefined ? {} : { selector } };

    expect(sortByClaim(unreadable, [mine, machine({})])).toEqual({ claimed: [mine], adopt: [], release: [] });
  });

  test('objects are sorted by claim, those of other namespaces left out', () => {
    const claimed = machine({ refs: [ours] });
    const adopt = machine({});
    const release = machine({ refs: [ours], pool: 'b' });

    const got = sortByClaim(set(), [
      claimed,
      adopt,
      release,
      machine({ refs: [foreign] }),
      machine({ namespace: 'x' }),
    ]);

    expect(got).toEqual({ claimed: [claimed], adopt: [adopt], release: [release] });
  });
});

describe('patches', () => {
  const reference = controllerReference(set(), 'machine.sapcloud.io/v1alpha1', 'MachineSet');
  const preconditions = { uid: 'uid-m-1', resourceVersion: '7' };

  test('adoption adds our controller reference and keeps foreign ones', () => {
    expect(adoptPatch(machine({ refs: [plain] }), reference)).toEqual({
      type: 'merge',
      body: { metadata: { ownerReferences: [reference, plain], ...preconditions } },
      base: expect.anything(),
    });
    expect(reference).toEqual({
      apiVersion: 'machine.sapcloud.io/v1alpha1',
      kind: 'MachineSet',
      name: 'set',
      uid: OURS,
      controller: true,
      blockOwnerDeletion: true,
    });
  });

  test('adoption turns a plain reference of ours into the controller, not into a second one', () => {
    const patch = adoptPatch(machine({ refs: [owner(OURS, false), plain] }), reference);

    expect(patch.body).toEqual({ metadata: { ownerReferences: [reference, plain], ...preconditions } });
  });

  test('release takes only our reference away', () => {
    expect(releasePatch(machine({ refs: [plain, ours] }), OURS)).toEqual({
      type: 'merge',
      body: { metadata: { ownerReferences: [plain], ...preconditions } },
      base: expect.anything(),
    });
    expect(releasePatch(machine({ refs: [ours] }), OURS).body).toEqual({
      metadata: { ownerReferences: [], ...preconditions },
    });
  });
});
