import { describe, expect, test } from '@jest/globals';

import { machine, pod } from '../../../test/builders.ts';
import type { Status } from '../../apis/meta.ts';
import { GateClosedError, type Admission, type Intent } from '../gate/gate.ts';
import type { ObjectIdentity } from './client.ts';
import { ApiError } from './errors.ts';
import { GatedWriter } from './gated-writer.ts';
import { MUTATE } from './mutate.ts';
import { mergePatch } from './patch.ts';
import { machines } from './resource.ts';
import type { GatedCall, Transport } from './transport.ts';

const REF = { namespace: 'default', name: 'm-1' };
const signal = new AbortController().signal;

/** A writer whose transport asks for admission and answers as told. */
class Scene {
  readonly asked: { intent: Intent; clusters: readonly string[] }[] = [];
  readonly sent: GatedCall[] = [];
  readonly seen: string[] = [];
  answer: unknown = machine();
  leftMs = 1_000;
  closed: GateClosedError | undefined;

  readonly writer = new GatedWriter({
    transport: {
      [MUTATE]: async (call: GatedCall) => {
        await call.admit(signal);
        this.sent.push(call);
        if (this.answer instanceof Error) throw this.answer;
        return this.answer;
      },
    } as unknown as Transport,
    gate: { admit: (intent, clusters) => this.#admit(intent, clusters) },
    cluster: 'control',
    observer: {
      wrote: (_resource, { metadata }) => void this.seen.push(`wrote ${metadata.name}`),
      deleted: (_resource, { metadata }: ObjectIdentity) => void this.seen.push(`deleted ${metadata.uid}`),
    },
  });

  #admit(intent: Intent, clusters: readonly string[]): Promise<Admission> {
    this.asked.push({ intent, clusters });
    if (this.closed !== undefined) return Promise.reject(this.closed);
    return Promise.resolve({ remainingMs: 1_000, fencingToken: 1n, leftMs: () => this.leftMs });
  }
}

describe('every mutation', () => {
  const patch = mergePatch(machine(), {});
  test.each<{
    call: string;
    run: (writer: GatedWriter) => Promise<unknown>;
    want: { intent: Intent; clusters: string[] };
  }>([
    {
      call: 'a creation',
      run: (writer) => writer.create('create', machines, machine()),
      want: { intent: 'create', clusters: ['control'] },
    },
    {
      call: 'a patch that concerns another cluster',
      run: (writer) => writer.patch('destroy', machines, REF, patch, { clusters: ['target'] }),
      want: { intent: 'destroy', clusters: ['control', 'target'] },
    },
    {
      call: 'a deletion that concerns another cluster',
      run: (writer) => writer.delete('destroy', machines, REF, { uid: 'u' }, { clusters: ['target'] }),
      want: { intent: 'destroy', clusters: ['control', 'target'] },
    },
    { call: 'an eviction', run: (writer) => writer.evict(pod()), want: { intent: 'destroy', clusters: ['control'] } },
  ])('asks the gate first: $call', async ({ run, want }) => {
    const scene = new Scene();
    await run(scene.writer);
    expect(scene.asked).toEqual([want]);

    scene.closed = new GateClosedError('outage', 'control', 'closed');
    await expect(run(scene.writer)).rejects.toBe(scene.closed);
    expect(scene.sent).toHaveLength(1);
  });

  test('hears from its gate for how long it is still admitted', async () => {
    const scene = new Scene();
    await scene.writer.patch('change', machines, REF, patch);
    const [call] = scene.sent;

    expect(call?.admittedMs?.()).toBe(1_000);
    scene.leftMs = 0;
    expect(call?.admittedMs?.()).toBe(0);
  });
});

describe('what is destroyed', () => {
  test('is the very object that was meant', async () => {
    const scene = new Scene();

    await scene.writer.delete('destroy', machines, REF, { uid: 'u', resourceVersion: '7' });
    await scene.writer.evict(pod());

    expect(scene.sent).toMatchObject([
      { method: 'DELETE', body: { preconditions: { uid: 'u', resourceVersion: '7' } } },
      { method: 'POST', body: { deleteOptions: { preconditions: { uid: pod().metadata.uid } } } },
    ]);
  });

  test('by eviction is not asked for again by the transport: the drain counts refusals', async () => {
    const scene = new Scene();
    await scene.writer.evict(pod());

    expect(scene.sent[0]?.retryTooManyRequests).toBe('never');
  });
});

describe('the caches are told', () => {
  const held = machine((m) => void Object.assign(m.metadata, { deletionTimestamp: 'now', finalizers: ['x'] }));
  const done: Status = { kind: 'Status', status: 'Success' };
  test.each([
    { title: 'what finalizers hold is there', answer: held, want: ['wrote m-1'] },
    {
      title: 'what nothing holds is gone',
      answer: { ...held, metadata: { ...held.metadata, finalizers: [] } },
      want: ['deleted u'],
    },
    { title: 'what a Status answers for is gone', answer: done, want: ['deleted u'] },
    { title: 'what is not found is gone', answer: new ApiError(404, 'NotFound', 'gone'), want: ['deleted u'] },
    { title: 'nothing is known after another error', answer: new ApiError(500, 'InternalError', 'no'), want: [] },
  ])('of a deletion: $title', async ({ answer, want }) => {
    const scene = new Scene();
    scene.answer = answer;

    await scene.writer.delete('destroy', machines, REF, { uid: 'u' }).catch(() => undefined);

    expect(scene.seen).toEqual(want);
  });
});

test.each([
  { field: 'metadata.uid', reason: 'Conflict', code: 409 },
  { field: 'spec.replicas', reason: 'Invalid', code: 422 },
])('a patch that is invalid because of $field is $reason', async ({ field, reason, code }) => {
  const scene = new Scene();
  scene.answer = new ApiError(422, 'Invalid', 'no', { status: { details: { causes: [{ field }] } } });

  await expect(scene.writer.patch('change', machines, REF, mergePatch(machine(), {}))).rejects.toMatchObject({
    reason,
    code,
  });
});

test('what is refused says of which object', async () => {
  const scene = new Scene();
  scene.answer = new ApiError(403, 'Forbidden', 'a webhook denied the request');

  await expect(scene.writer.patch('change', machines, REF, mergePatch(machine(), {}))).rejects.toMatchObject({
    object: 'machines/m-1',
  });
});
