import { describe, expect, test } from '@jest/globals';

import type { KubeObject } from '../../../pkg/apis/meta.ts';
import { DEFINITIONS, MARK } from './objects.ts';
import { type Found, isLocal, planOf, undoOf } from './plan.ts';

const object = (name: string, labels: Record<string, string> = {}, more: object = {}): KubeObject => ({
  metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z', labels, ...more },
});
const all = (labels: Record<string, string> = {}, more: object = {}): readonly KubeObject[] =>
  DEFINITIONS.map((name) => object(name, labels, more));
const EMPTY: Found = { namespace: undefined, definitions: [], foreign: [], managers: [] };

describe('machinist try', () => {
  test.each([
    {
      what: 'creates all in an empty cluster',
      found: EMPTY,
      plan: { kind: 'create', definitions: DEFINITIONS, isResumed: false },
    },
    {
      what: 'creates the definitions that are missing',
      found: { ...EMPTY, definitions: all().slice(1) },
      plan: { kind: 'create', definitions: [DEFINITIONS[0]], isResumed: false },
    },
    {
      what: 'continues in a namespace that it has created',
      found: { ...EMPTY, definitions: all(MARK), namespace: object('machinist-try', MARK) },
      plan: { kind: 'create', definitions: [], isResumed: true },
    },
    {
      what: 'leaves a cluster alone that has machines',
      found: { ...EMPTY, definitions: all(), foreign: ['Machine a/1', 'Machine a/2', 'Machine a/3', 'Machine a/4'] },
      plan: {
        kind: 'refuse',
        why: expect.stringMatching(/already has Machine a\/1, Machine a\/2, Machine a\/3 and 1 more, which/),
      },
    },
    {
      what: 'leaves a namespace alone that somebody else has created',
      found: { ...EMPTY, namespace: object('machinist-try') },
      plan: { kind: 'refuse', why: expect.stringContaining('machinist try has not created it') },
    },
    {
      what: 'waits for a namespace to be deleted',
      found: { ...EMPTY, namespace: object('machinist-try', MARK, { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
      plan: { kind: 'refuse', why: expect.stringContaining('still being deleted') },
    },
  ])('$what', ({ found, plan }) => {
    expect(planOf(found)).toEqual(plan);
  });
});

describe('an undo', () => {
  const names = (objects: readonly KubeObject[]): readonly string[] => objects.map(({ metadata }) => metadata.name);

  test.each<{
    what: string;
    definitions: readonly KubeObject[];
    foreign: readonly string[];
    managers?: readonly string[];
    kept: string | undefined;
  }>([
    { what: 'removes definitions that it has created', definitions: all(MARK), foreign: [], kept: undefined },
    {
      what: 'keeps those that a manager of others works with',
      definitions: all(MARK),
      foreign: [],
      managers: ['Lease a/machine-controller'],
      kept: 'Lease a/machine-controller exists',
    },
    { what: 'keeps those that existed before', definitions: all(), foreign: [], kept: 'it existed before' },
    {
      what: 'keeps those of objects of others',
      definitions: all(MARK),
      foreign: ['Machine a/1'],
      kept: 'Machine a/1 exists',
    },
    {
      what: 'removes those that only the API server has changed',
      definitions: all(MARK, { managedFields: [{ manager: 'machinist' }, { manager: 'kube-apiserver' }] }),
      foreign: [],
      kept: undefined,
    },
    {
      what: 'keeps those that somebody has applied since',
      definitions: all(MARK, { managedFields: [{ manager: 'machinist' }, { manager: 'kubectl' }] }),
      foreign: [],
      kept: 'kubectl has changed it since',
    },
  ])('$what', ({ definitions, foreign, managers = [], kept }) => {
    const plan = undoOf({ definitions, foreign, managers });

    expect(names(plan.removed)).toEqual(kept === undefined ? DEFINITIONS : []);
    expect([...plan.kept.values()]).toEqual(kept === undefined ? [] : DEFINITIONS.map(() => kept));
  });
});

test.each([
  { context: 'kind-kind', server: 'https://127.0.0.1:41235', expected: true },
  { context: 'anything', server: 'https://localhost:6443', expected: true },
  { context: 'anything', server: 'https://[::1]:6443', expected: true },
  { context: 'minikube', server: 'https://192.168.49.2:8443', expected: true },
  { context: 'k3d-mine', server: 'https://0.0.0.0:33011', expected: true },
  { context: 'production', server: 'https://api.example.com:6443', expected: false },
  { context: 'minikubes-of-others', server: 'https://10.0.0.1', expected: false },
  { context: 'production', server: 'https://127.0.0.1.example.com', expected: false },
])('$context at $server is on this host: $expected', ({ context, server, expected }) => {
  expect(isLocal(context, server)).toBe(expected);
});
