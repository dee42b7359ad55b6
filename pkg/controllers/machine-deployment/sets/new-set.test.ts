import { describe, expect, test } from '@jest/globals';

import {
  CHANGED_ON_CREATION_ANNOTATION,
  DESIRED_REPLICAS_ANNOTATION,
  LAST_APPLIED_CONFIGURATION_ANNOTATION,
  LAST_SCALER_CHANGE_ANNOTATION,
  MACHINE_FINALIZER,
  MAX_REPLICAS_ANNOTATION,
  PREFER_NO_SCHEDULE_KEY,
  REVISION_ANNOTATION,
  REVISION_HISTORY_ANNOTATION,
  TEMPLATE_HASH_LABEL,
  TRIGGER_DELETION_ANNOTATION,
  UNFREEZE_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import {
  machineDeployment,
  machineSet,
  type BuiltMachineDeployment,
  type BuiltMachineSet,
} from '../../../../test/builders.ts';
import { findNewSet } from '../observed.ts';
import { newSetFor } from './create-set.ts';
import { newSetChange } from './new-set.ts';
import { templateHash } from './template-hash.ts';

const deployment = (change?: (d: BuiltMachineDeployment) => void): BuiltMachineDeployment => machineDeployment(change);
const set = (name: string, change?: (s: BuiltMachineSet) => void): BuiltMachineSet =>
  machineSet((s) => {
    s.metadata.name = name;
    s.spec.template.metadata = { labels: { pool: 'a', [TEMPLATE_HASH_LABEL]: '1' } };
    change?.(s);
  });

test.each([
  { title: 'a later one', wants: '2026-01-01T00:00:02Z', told: '2026-01-01T00:00:02Z' },
  {
    title: 'an earlier one, which would make its machines newly chosen',
    wants: '2026-01-01T00:00:00Z',
    told: undefined,
  },
  { title: 'a later one, but with its size', wants: '2026-01-01T00:00:02Z', isScaling: true, told: undefined },
])('a set that knows an autoscaler’s change is told of $title: $told', ({ wants, isScaling = false, told }) => {
  const d = deployment((built) => (built.metadata.annotations[LAST_SCALER_CHANGE_ANNOTATION] = wants));
  const known = set('s', (s) => {
    s.metadata.annotations[REVISION_ANNOTATION] = '1';
    s.metadata.annotations[LAST_SCALER_CHANGE_ANNOTATION] = '2026-01-01T00:00:01Z';
  });

  expect(newSetChange(d, known, [], isScaling)).toEqual(
    told === undefined ? undefined : { metadata: { annotations: { [LAST_SCALER_CHANGE_ANNOTATION]: told } } },
  );
});

test('a set that was changed on its creation, and whose template is wanted now, is a revision like any other', () => {
  const known = set('s', (s) => {
    s.metadata.annotations[REVISION_ANNOTATION] = '1';
    s.metadata.annotations[CHANGED_ON_CREATION_ANNOTATION] = 'true';
  });

  expect(newSetChange(deployment(), known, [])).toEqual({
    metadata: { annotations: { [CHANGED_ON_CREATION_ANNOTATION]: null } },
  });
});

describe('the new set', () => {
  test('is the oldest one of the same template, whatever its hash and what needs no rollout', () => {
    const other = set('other', (s) => {
      s.spec.template.spec = { class: { kind: 'MachineClass', name: 'class-2' } };
    });
    const young = set('young', (s) => {
      s.metadata.creationTimestamp = '2026-01-02T00:00:00Z';
    });
    const old = set('old', (s) => {
      s.spec.template.spec = { class: { kind: 'Other', name: 'class-1' }, drainTimeout: '1h' };
    });

    expect(findNewSet(deployment(), [other, young, old])?.metadata.name).toBe('old');
    expect(findNewSet(deployment(), [other])).toBeUndefined();
  });

  test('is made of the template, with hash, notes and revision, and without what belongs to one object', () => {
    const d = deployment((built) => {
      built.spec.replicas = 10;
      built.spec.minReadySeconds = 5;
      built.spec.strategy.rollingUpdate = { maxSurge: '25%', maxUnavailable: 0 };
      built.metadata.annotations = {
        note: 'x',
        [LAST_SCALER_CHANGE_ANNOTATION]: '2026-01-01T00:00:00Z',
        [LAST_APPLIED_CONFIGURATION_ANNOTATION]: '{}',
        [REVISION_ANNOTATION]: '9',
        [REVISION_HISTORY_ANNOTATION]: '1',
        [DESIRED_REPLICAS_ANNOTATION]: '1',
        [MAX_REPLICAS_ANNOTATION]: '1',
        [PREFER_NO_SCHEDULE_KEY]: 'True',
        [UNFREEZE_ANNOTATION]: 'True',
        [TRIGGER_DELETION_ANNOTATION]: 'm-1',
      };
    });
    const old = set('old', (s) => {
      s.metadata.annotations[REVISION_ANNOTATION] = '3';
    });
    const hash = templateHash(d.spec.template, undefined);

    const got = newSetFor(d, [old], 3);

    expect(hash).toMatch(/^\d+$/);
    expect(got.metadata.name).toMatch(/^deployment-1-[456789bcdf]{5}$/);
    expect(got).toMatchObject({
      metadata: {
        namespace: 'default',
        labels: { pool: 'a', [TEMPLATE_HASH_LABEL]: hash },
        finalizers: [MACHINE_FINALIZER],
        ownerReferences: [{ kind: 'MachineDeployment', name: 'deployment-1', uid: d.metadata.uid, controller: true }],
      },
      spec: {
        replicas: 3,
        minReadySeconds: 5,
        selector: { matchLabels: { pool: 'a', [TEMPLATE_HASH_LABEL]: hash } },
        template: {
          metadata: { labels: { pool: 'a', [TEMPLATE_HASH_LABEL]: hash } },
          spec: { class: { kind: 'MachineClass', name: 'class-1' } },
        },
      },
    });
    expect(got.metadata.annotations).toEqual({
      note: 'x',
      [LAST_SCALER_CHANGE_ANNOTATION]: '2026-01-01T00:00:00Z',
      [REVISION_ANNOTATION]: '4',
      [DESIRED_REPLICAS_ANNOTATION]: '10',
      [MAX_REPLICAS_ANNOTATION]: '13',
    });
  });

  test('has the same name each time, and another after a collision', () => {
    const { name } = newSetFor(deployment(), [], 0).metadata;
    const collided = deployment((d) => {
      d.status.collisionCount = 1;
    });

    expect(newSetFor(deployment(), [], 0).metadata.name).toBe(name);
    expect(newSetFor(collided, [], 0).metadata.name).not.toBe(name);
  });
});

const inStep = (change?: (s: BuiltMachineSet) => void): BuiltMachineSet =>
  set('new', (s) => {
    s.metadata.annotations[REVISION_ANNOTATION] = '1';
    change?.(s);
  });

describe('an existing new set', () => {
  test('that is in step is left alone', () => {
    expect(newSetChange(deployment(), inStep(), [])).toBeUndefined();
  });

  test('keeps annotations that the deployment no longer has', () => {
    const s = inStep((built) => {
      built.metadata.annotations['note'] = 'x';
    });

    expect(newSetChange(deployment(), s, [])).toBeUndefined();
  });

  test('gets changed annotations, node template, configuration, class kind and counts in one patch', () => {
    const d = deployment((built) => {
      built.metadata.annotations['note'] = 'x';
      built.spec.minReadySeconds = 5;
      built.spec.template.spec = {
        class: { kind: 'Other', name: 'class-1' },
        nodeTemplate: { metadata: { labels: { a: '1' } } },
        drainTimeout: '1h',
      };
    });

    expect(newSetChange(d, inStep(), [])).toEqual({
      metadata: { annotations: { note: 'x' } },
      spec: {
        minReadySeconds: 5,
        template: {
          spec: { class: { kind: 'Other' }, nodeTemplate: { metadata: { labels: { a: '1' } } }, drainTimeout: '1h' },
        },
      },
    });
  });

  test.each([
    { title: 'is raised above all old ones', own: '1', history: undefined, want: { revision: '4', history: '1' } },
    { title: 'goes into the history', own: '2', history: '1', want: { revision: '4', history: '1,2' } },
    { title: 'goes into the history once', own: '2', history: '2,1', want: { revision: '4', history: '1,2' } },
    { title: 'is never lowered', own: '7', history: '1', want: undefined },
  ])('its revision $title', ({ own, history, want }) => {
    const s = inStep((built) => {
      built.metadata.annotations[REVISION_ANNOTATION] = own;
      if (history !== undefined) built.metadata.annotations[REVISION_HISTORY_ANNOTATION] = history;
    });
    const old = set('old', (built) => {
      built.metadata.annotations[REVISION_ANNOTATION] = '3';
    });

    const got = newSetChange(deployment(), s, [old, set('unnumbered')]);

    expect(got).toEqual(
      want && {
        metadata: {
          annotations: { [REVISION_ANNOTATION]: want.revision, [REVISION_HISTORY_ANNOTATION]: want.history },
        },
      },
    );
  });

  test('its history is bounded', () => {
    const s = inStep((built) => {
      built.metadata.annotations[REVISION_HISTORY_ANNOTATION] = Array.from({ length: 80 }, (_u, i) => i + 100).join(
        ',',
      );
    });
    const old = set('old', (built) => {
      built.metadata.annotations[REVISION_ANNOTATION] = '300';
    });

    const change = newSetChange(deployment(), s, [old]) as { metadata: { annotations: Record<string, string> } };

    expect(change.metadata.annotations[REVISION_HISTORY_ANNOTATION]?.split(',')).toHaveLength(50);
  });
});
