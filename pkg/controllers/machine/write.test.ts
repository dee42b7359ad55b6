import { describe, expect, test } from '@jest/globals';

import { machine } from '../../../test/builders.ts';
import { copyOf, type MachineCopy } from './status.ts';
import { mainPatch, statusChange } from './write.ts';

const before = machine((m) => {
  m.metadata.uid = 'u1';
  m.metadata.resourceVersion = '7';
  m.status.lastOperation.errorCode = 'Internal';
});

function change(apply: (copy: MachineCopy) => void): MachineCopy {
  const copy = copyOf(before);
  apply(copy);
  return copy;
}

describe('what a pass writes', () => {
  test('is nothing when it changed nothing', () => {
    expect(mainPatch(before, copyOf(before), false)).toBeUndefined();
    expect(statusChange(before, copyOf(before))).toBeUndefined();
  });

  test('names only what we own and what changed', () => {
    const after = change((copy) => {
      copy.metadata.labels = { node: 'n-2', foreign: 'x' };
      copy.spec.providerID = 'sim:///n-2';
      copy.spec.healthTimeout = '1m';
    });

    expect(mainPatch(before, after, false)).toEqual({
      type: 'merge',
      body: { metadata: { labels: { node: 'n-2' }, uid: 'u1' }, spec: { providerID: 'sim:///n-2' } },
    });
  });

  test('holds only for the version it was computed from when finalizers change', () => {
    const after = change((copy) => {
      copy.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
    });

    expect(mainPatch(before, after, false)?.body).toEqual({
      metadata: { finalizers: ['machine.sapcloud.io/machine-controller-manager'], uid: 'u1', resourceVersion: '7' },
    });
  });

  test('holds only for that version when the status follows', () => {
    const after = change((copy) => {
      copy.metadata.annotations = { 'machinepriority.machine.sapcloud.io': '3' };
    });

    expect(mainPatch(before, after, true)?.body).toEqual({
      metadata: { annotations: { 'machinepriority.machine.sapcloud.io': '3' }, uid: 'u1', resourceVersion: '7' },
    });
  });

  test('takes away members of the status that are gone', () => {
    const after = change((copy) => {
      copy.status.currentStatus = { phase: 'Unknown' };
      copy.status.lastOperation = { type: 'HealthCheck', state: 'Processing' };
      delete copy.status.lastKnownState;
    });

    expect(statusChange(before, after)).toEqual({
      currentStatus: { phase: 'Unknown', lastUpdateTime: null },
      lastOperation: {
        type: 'HealthCheck',
        state: 'Processing',
        description: null,
        errorCode: null,
        lastUpdateTime: null,
      },
    });
  });

  test('replaces lists', () => {
    const after = change((copy) => {
      copy.status.conditions = [{ type: 'Ready', status: 'True' }];
    });

    expect(statusChange(before, after)).toEqual({ conditions: [{ type: 'Ready', status: 'True' }] });
  });
});
