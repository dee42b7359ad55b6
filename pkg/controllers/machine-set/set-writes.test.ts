import { describe, expect, test } from '@jest/globals';

import { machine, machineSet } from '../../../test/builders.ts';
import { MemoryClient } from '../../../test/memory-client.ts';
import { PRESERVE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import { ApiError } from '../../kube/errors.ts';
import { preserveFailed } from './auto-preserve.ts';
import { pushTemplate } from './template-push.ts';

const signal = new AbortController().signal;
const GONE = new ApiError(404, 'NotFound', 'gone');
const CHANGED = new ApiError(409, 'Conflict', 'changed');
const guard = { intent: 'change', uid: machine().metadata.uid, resourceVersion: '1' };

describe('a template that is pushed', () => {
  const set = machineSet((s) => void (s.spec.template.spec = { ...s.spec.template.spec, drainTimeout: '5m' }));

  test('holds only for the Machine that was looked at', async () => {
    const writer = new MemoryClient();

    await pushTemplate({ writer }, set, [machine()], signal);

    expect(writer.writes).toMatchObject([{ what: 'machines/m-1', ...guard, body: { spec: { drainTimeout: '5m' } } }]);
  });

  test.each([
    { failure: GONE, throws: false },
    { failure: CHANGED, throws: true },
  ])('to a Machine that is $failure fails the pass: $throws', async ({ failure, throws }) => {
    const writer = new MemoryClient();
    writer.failures.push(failure);

    const [{ status }] = await Promise.allSettled([pushTemplate({ writer }, set, [machine()], signal)]);

    expect(status).toBe(throws ? 'rejected' : 'fulfilled');
  });
});

describe('a Failed machine that its set keeps', () => {
  const set = machineSet((s) => void (s.spec.autoPreserveFailedMachineMax = 1));
  const failed = machine((m) => void (m.status.currentStatus.phase = 'Failed'));

  test('is annotated as the Machine that was looked at', async () => {
    const writer = new MemoryClient();

    await preserveFailed({ writer }, set, [failed], () => undefined, signal);

    const body = { metadata: { annotations: { [PRESERVE_ANNOTATION]: 'auto-preserved' } } };
    expect(writer.writes).toMatchObject([{ what: 'machines/m-1', ...guard, body }]);
  });

  test.each([{ failure: GONE }, { failure: CHANGED }])('and that is $failure stops nothing', async ({ failure }) => {
    const writer = new MemoryClient();
    writer.failures.push(failure);

    await expect(preserveFailed({ writer }, set, [failed], () => undefined, signal)).resolves.toBeUndefined();
  });

  test('that cannot be written fails the pass', async () => {
    const writer = new MemoryClient();
    writer.failures.push(new ApiError(403, 'Forbidden', 'no'));

    await expect(preserveFailed({ writer }, set, [failed], () => undefined, signal)).rejects.toThrow('no');
  });
});
