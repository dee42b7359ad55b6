import { describe, expect, test } from '@jest/globals';

import { machines, nodes } from '../client/resource.ts';
import { eventNameFor, newEvent, subjectOf } from './event-object.ts';
import { secureRandom } from '../../base/random/random.ts';

const NOW = Date.parse('2026-01-01T00:00:00.500Z');
const metadata = { name: 'm-1', uid: 'u-1', resourceVersion: '1', creationTimestamp: '' };
const machine = subjectOf(machines, { metadata: { ...metadata, namespace: 'ns' } } as never);
const node = subjectOf(nodes, { metadata });

describe('an Event object', () => {
  test('is what the original writes: source, object, count, whole seconds', () => {
    const occurrence = { subject: machine, type: 'Warning', reason: 'FailedCreate', message: 'quota' } as const;
    const times = { count: 3, firstMs: NOW - 60_000, lastMs: NOW };

    expect(newEvent('m-1.abc', { component: 'machineset-controller' }, occurrence, times)).toEqual({
      metadata: { name: 'm-1.abc', namespace: 'ns' },
      involvedObject: {
        apiVersion: 'machine.sapcloud.io/v1alpha1',
        kind: 'Machine',
        namespace: 'ns',
        name: 'm-1',
        uid: 'u-1',
      },
      type: 'Warning',
      reason: 'FailedCreate',
      message: 'quota',
      source: { component: 'machineset-controller' },
      reportingComponent: 'machineset-controller',
      reportingInstance: '',
      firstTimestamp: '2025-12-31T23:59:00Z',
      lastTimestamp: '2026-01-01T00:00:00Z',
      count: 3,
    });
  });

  test('about a cluster-scoped object is in namespace default', () => {
    const occurrence = { subject: node, type: 'Normal', reason: 'Drained', message: 'drained' } as const;

    const event = newEvent('n', { component: 'c', host: 'h' }, occurrence, { count: 1, firstMs: NOW, lastMs: NOW });

    expect(event.metadata.namespace).toBe('default');
    expect(event.involvedObject).not.toHaveProperty('namespace');
    expect(event.reportingInstance).toBe('h');
  });

  test('has a name of its own that is never too long', () => {
    const long = { ...machine, name: 'x'.repeat(253) };

    expect(eventNameFor(machine, NOW, secureRandom)).toMatch(/^m-1\.[0-9a-f]{19}$/);
    expect(eventNameFor(machine, NOW, secureRandom)).not.toBe(eventNameFor(machine, NOW, secureRandom));
    expect(eventNameFor(long, NOW, secureRandom)).toHaveLength(253);
  });
});
