import { expect, test } from '@jest/globals';

import {
  CHANGED_ON_CREATION_ANNOTATION,
  DELETION_POLICY_ANNOTATION,
  EFFECTIVE_CREATION_TIMEOUT_ANNOTATION,
  FRONT_END_REPLICAS_ANNOTATION,
  LAST_APPLIED_CONFIGURATION_ANNOTATION,
  LAST_SCALER_CHANGE_ANNOTATION,
  MAX_REPLACEMENTS_ANNOTATION,
  NODE_GROUP_MAX_ANNOTATION,
  NODE_GROUP_MIN_ANNOTATION,
  PAUSED_BY_FRONT_END_ANNOTATION,
  REVISION_ANNOTATION,
  TRIGGER_DELETION_ANNOTATION,
  UNFREEZE_ANNOTATION,
  UPDATE_ORDER_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { KEYS } from '../../../../hack/generate/annotations-reference.ts';
import { machineDeployment, machineSet } from '../../../../test/builders.ts';
import { annotationsForSets, rolledBackAnnotations } from './annotation-copies.ts';

const annotated = (annotations: Record<string, string>) =>
  machineDeployment((d) => void (d.metadata.annotations = annotations));

test.each([
  { key: LAST_APPLIED_CONFIGURATION_ANNOTATION, reachesSets: false, comesBack: false },
  { key: REVISION_ANNOTATION, reachesSets: false, comesBack: false },
  { key: UNFREEZE_ANNOTATION, reachesSets: false, comesBack: false },
  { key: TRIGGER_DELETION_ANNOTATION, reachesSets: false, comesBack: false },
  { key: FRONT_END_REPLICAS_ANNOTATION, reachesSets: false, comesBack: false },
  { key: PAUSED_BY_FRONT_END_ANNOTATION, reachesSets: false, comesBack: false },
  { key: CHANGED_ON_CREATION_ANNOTATION, reachesSets: false, comesBack: false },
  { key: DELETION_POLICY_ANNOTATION, reachesSets: false, comesBack: false },
  { key: UPDATE_ORDER_ANNOTATION, reachesSets: false, comesBack: false },
  { key: LAST_SCALER_CHANGE_ANNOTATION, reachesSets: true, comesBack: false },
  { key: EFFECTIVE_CREATION_TIMEOUT_ANNOTATION, reachesSets: true, comesBack: false },
  { key: MAX_REPLACEMENTS_ANNOTATION, reachesSets: true, comesBack: false },
  { key: NODE_GROUP_MIN_ANNOTATION, reachesSets: true, comesBack: false },
  { key: NODE_GROUP_MAX_ANNOTATION, reachesSets: true, comesBack: false },
  { key: 'machine.sapcloud.io/of-a-later-version', reachesSets: true, comesBack: false },
  { key: 'safety.machine.sapcloud.io/of-a-later-version', reachesSets: true, comesBack: false },
  { key: 'autoscaler.gardener.cloud/scale-down-unneeded-time', reachesSets: true, comesBack: false },
  { key: 'notmachine.sapcloud.io/other', reachesSets: true, comesBack: true },
  { key: 'kubernetes.io/change-cause', reachesSets: true, comesBack: true },
  { key: 'note', reachesSets: true, comesBack: true },
])('$key reaches the new set: $reachesSets; a rollback changes it: $comesBack', ({ key, reachesSets, comesBack }) => {
  const [now, target] = [annotated({ [key]: 'now' }), machineSet((s) => void (s.metadata.annotations[key] = 'then'))];

  expect(annotationsForSets(now)).toEqual(reachesSets ? { [key]: 'now' } : {});
  expect(rolledBackAnnotations(now, target)).toEqual(comesBack ? { [key]: 'then' } : {});
  expect(rolledBackAnnotations(annotated({}), target)).toEqual(comesBack ? { [key]: 'then' } : {});
  expect(rolledBackAnnotations(now, machineSet())).toEqual(comesBack ? { [key]: null } : {});
});

test('no annotation by which a MachineDeployment is operated is changed by a rollback', () => {
  const keys = KEYS.flatMap(({ key, kind, on }) =>
    kind === 'annotation' && on.includes('MachineDeployment') ? [key] : [],
  );
  const values = Object.fromEntries(keys.map((key) => [key, 'x']));

  expect(keys.length).toBeGreaterThan(8);
  expect(rolledBackAnnotations(annotated(values), machineSet())).toEqual({});
});
