import { expect, test } from '@jest/globals';

import { TEMPLATE_HASH_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { machine, machineSet, type BuiltMachine, type BuiltMachineSet } from '../../../../test/builders.ts';
import { labelStep } from './hash-label.ts';

const HASH = '42';
const labelled = machine((m) => (m.metadata.labels[TEMPLATE_HASH_LABEL] = HASH));
const inTemplate = (s: BuiltMachineSet): void => {
  s.spec.template.metadata = { labels: { pool: 'a', [TEMPLATE_HASH_LABEL]: HASH } };
};

test.each<{ title: string; change: (s: BuiltMachineSet) => void; machines?: BuiltMachine[]; kind: string | undefined }>(
  [
    {
      title: 'has everything',
      change: (s) => (s.spec.selector = { matchLabels: { [TEMPLATE_HASH_LABEL]: HASH } }),
      kind: undefined,
    },
    { title: 'has nothing', change: () => undefined, kind: 'template' },
    {
      title: 'is being deleted',
      change: (s) => (s.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'),
      kind: undefined,
    },
    { title: 'has machines without the label', change: inTemplate, machines: [machine()], kind: 'machines' },
    { title: 'has labelled all', change: inTemplate, machines: [labelled], kind: 'selector' },
    {
      title: 'has not acted on the template yet',
      change: (s) => {
        inTemplate(s);
        s.metadata.generation = 2;
      },
      machines: [labelled],
      kind: undefined,
    },
    {
      title: 'has not counted its machines yet',
      change: (s) => {
        inTemplate(s);
        s.status.fullyLabeledReplicas = 0;
      },
      machines: [labelled],
      kind: undefined,
    },
  ],
)('a set that $title needs next: $kind', ({ change, machines = [labelled], kind }) => {
  expect(labelStep(machineSet(change), machines)?.kind).toBe(kind);
});
