import { describe, expect, test } from '@jest/globals';

import { MemoryInformer } from '../../../../test/memory-informer.ts';
import type { KubeObject } from '../../../apis/meta.ts';
import type { Pod } from '../../../apis/wire.ts';
import type { Drain, DrainRequest } from '../../../drain/drain.ts';
import type { Reader } from '../../../kube/client/client.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { obeying } from '../../../controllers/machine-facts/pod-rules.ts';
import { DrainRules, type DrainRulesDeps } from './drain-rules.ts';

const META = { uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
const MACHINE = { namespace: 'ns', labels: {}, clusterLabels: {} };
const DEFINITION: KubeObject = { metadata: { ...META, name: 'machinedrainrules.cluster.x-k8s.io' } };
const POD: Pod = { metadata: { ...META, name: 'p', namespace: 'apps' } };
const never = new AbortController().signal;

const skip = (name: string, namespaceSelector?: object): KubeObject =>
  ({
    metadata: { ...META, name, namespace: 'ns' },
    spec: { drain: { behavior: 'Skip' }, ...(namespaceSelector && { pods: [{ namespaceSelector }] }) },
  }) as KubeObject;

/** Rules, their cache, and what is read of namespaces. */
function world(rules: readonly KubeObject[] = [], hasSynced = true) {
  const definitions = new MemoryInformer<KubeObject>();
  const cache = new MemoryInformer<KubeObject>(rules);
  const state = {
    hasSynced,
    opened: 0,
    closed: 0,
    refuse: undefined as ((err: ApiError) => void) | undefined,
    changes: 0,
    listed: 0,
  };
  const open: DrainRulesDeps['open'] = (_resource, refused) => {
    state.opened++;
    state.refuse = refused;
    const informer = {
      hasSynced: state.hasSynced,
      list: () => cache.list(),
      onChange: (handler: Parameters<typeof cache.onChange>[0]) => cache.onChange(handler),
      waitForSync: () => new Promise<void>(() => undefined),
    };
    return { informer, close: () => void state.closed++ };
  };
  const drainRules = new DrainRules({ definitions, open });
  drainRules.onChange(() => state.changes++);
  const reader = {
    list: () => {
      state.listed++;
      return Promise.resolve({ metadata: {}, items: [{ metadata: { name: 'apps', labels: { team: 'a' } } }] });
    },
  } as unknown as Reader;
  const of = async () => (await drainRules.of(MACHINE, { reader }, never))(POD);
  return { definitions, cache, state, drainRules, of };
}

describe('rules for drains', () => {
  test('are none where their kind is not served', async () => {
    const { of, state } = world([skip('a')]);

    expect(await of()).toEqual({ behavior: 'leaves', order: 0 });
    expect(state.opened).toBe(0);
  });

  test('are obeyed from when their kind is served to when it is not', async () => {
    const { definitions, state, of } = world([skip('a')]);
    definitions.put(DEFINITION);
    expect(await of()).toEqual({ behavior: 'stays', by: 'MachineDrainRule a' });

    definitions.remove(DEFINITION.metadata.name);

    expect(await of()).toEqual({ behavior: 'leaves', order: 0 });
    expect(state).toMatchObject({ opened: 1, closed: 1, changes: 2 });
  });

  test('let nothing be drained while they are not known, and say why', async () => {
    const { definitions, state, of } = world([], false);
    definitions.put(DEFINITION);
    await expect(of()).rejects.toThrow('MachineDrainRules are unknown: loading is still in progress');

    state.refuse?.(new ApiError(403, 'Forbidden', 'listing them is forbidden'));

    await expect(of()).rejects.toThrow(': apply deploy/rbac/cluster-api.yaml (listing them is forbidden)');

    state.refuse?.(new ApiError(404, 'NotServed', 'no such kind'));

    await expect(of()).rejects.toThrow(
      ': the CustomResourceDefinition serves no supported version (v1beta2 or v1beta1): upgrade it',
    );
  });

  test('are told of when they change', () => {
    const { definitions, cache, state } = world();
    definitions.put(DEFINITION);
    const before = state.changes;

    cache.put(skip('b'));

    expect(state.changes).toBe(before + 1);
  });

  test('read namespaces only where a rule asks for their labels', async () => {
    const byName = world([skip('a', { matchLabels: { 'kubernetes.io/metadata.name': 'apps' } })]);
    const byTeam = world([skip('a', { matchLabels: { team: 'a' } })]);
    for (const { definitions } of [byName, byTeam]) definitions.put(DEFINITION);

    expect(await byName.of()).toEqual({ behavior: 'stays', by: 'MachineDrainRule a' });
    expect(await byTeam.of()).toEqual({ behavior: 'stays', by: 'MachineDrainRule a' });
    expect([byName.state.listed, byTeam.state.listed]).toEqual([0, 1]);
  });
});

describe('a drain that obeys rules', () => {
  /** Drains until it is aborted, or ends as told. */
  function hanging() {
    const begun: AbortSignal[] = [];
    const drain: Drain = (_request, signal) => {
      begun.push(signal);
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    };
    return { begun, drain };
  }
  const REQUEST = { force: false, rules: () => Promise.reject(new Error('not asked here')) } as unknown as DrainRequest;

  test('begins anew when they change, and ends when it is aborted', async () => {
    const { begun, drain } = hanging();
    const { definitions, drainRules } = world();
    const abort = new AbortController();
    const ended = obeying(drain, drainRules)(REQUEST, abort.signal);

    definitions.put(DEFINITION);
    await new Promise(setImmediate);
    expect(begun.map(({ aborted }) => aborted)).toEqual([true, false]);

    abort.abort(new Error('enough'));
    await expect(ended).rejects.toThrow('enough');
    expect(begun).toHaveLength(2);
  });

  test('is let alone by them when it is forced', async () => {
    const { begun, drain } = hanging();
    const { definitions, drainRules } = world();
    void obeying(drain, drainRules)({ ...REQUEST, force: true }, never);

    definitions.put(DEFINITION);
    await new Promise(setImmediate);

    expect(begun.map(({ aborted }) => aborted)).toEqual([false]);
  });
});
