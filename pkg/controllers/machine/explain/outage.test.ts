import { expect, test } from '@jest/globals';

import { machine, type BuiltMachine } from '../../../../test/builders.ts';
import { describeBlockingOutages } from '../../../kube/gate/outage.ts';
import { describeStage } from '../../machine-facts/deletion-stage.ts';
import { machineConditions } from './conditions.ts';
import { explain } from './explain.ts';

const OUTAGE = describeBlockingOutages([{ cluster: 'target', sinceMs: 0, why: 'no answer' }]);

const draining = (text: string, labels: Readonly<Record<string, string>> = {}): BuiltMachine =>
  machine((m) => {
    m.metadata.deletionTimestamp = '2026-01-01T00:01:00Z';
    m.metadata.finalizers = ['machine.sapcloud.io/machine-controller-manager'];
    Object.assign(m.metadata.labels, labels);
    m.status.currentStatus.phase = 'Terminating';
    m.status.lastOperation = { type: 'Delete', state: 'Processing', description: describeStage('drain', text) };
    if (text === OUTAGE) m.status.lastOperation.errorCode = 'ClusterOutage';
  });

test.each([
  { what: 'the status says so', m: draining(OUTAGE), outage: undefined },
  { what: 'somebody else says so', m: draining(''), outage: OUTAGE },
  { what: 'both say so', m: draining(OUTAGE), outage: OUTAGE },
])('a deletion whose target does not answer waits for it and nothing else: $what', ({ m, outage }) => {
  expect(explain(m, 0, outage)).toMatchObject({
    reason: 'APIServerUnreachable',
    message: OUTAGE,
    waitingFor: 'the API server to answer',
    nextStep: 'Nothing until then; it continues where it stopped (Draining).',
  });
});

test('a machine that works is not told to be well while nobody can know', () => {
  expect(explain(machine(), 0, OUTAGE)).toMatchObject({ reason: 'APIServerUnreachable', message: OUTAGE });
});

test('a deletion by force waits for no target', () => {
  expect(explain(draining('', { 'force-deletion': 'True' }), 0, OUTAGE).reason).toBe('Draining');
});

test('the condition of a drain that is held says so', () => {
  expect(machineConditions(draining(OUTAGE), 0)).toContainEqual(
    expect.objectContaining({ type: 'Drained', status: 'False', reason: 'APIServerUnreachable', message: OUTAGE }),
  );
});
