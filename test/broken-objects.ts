import type { Machine } from '../pkg/apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../pkg/apis/machine/v1alpha1/machine-class.ts';
import type { MachineDeployment } from '../pkg/apis/machine/v1alpha1/machine-deployment.ts';
import type { MachineSet } from '../pkg/apis/machine/v1alpha1/machine-set.ts';
import {
  type BuiltMachine,
  type BuiltMachineClass,
  type BuiltMachineDeployment,
  type BuiltMachineSet,
  machine,
  machineClass,
  machineDeployment,
  machineSet,
} from './builders.ts';

/** An object that the original's CRDs store and that no controller can obey. */
interface BrokenObject {
  /** What is wrong with it, in a few words. */
  readonly what: string;
  readonly object: (Machine | MachineSet | MachineDeployment | MachineClass) & { kind?: string };
  /** The field that is blamed. */
  readonly field: string;
  /** Part of the message: at least the field's own name. */
  readonly message: string;
}

type Row<T> = readonly [what: string, change: (object: T) => void, field: string, message: string];

/** Removes a member, also one that the types require. */
function without(object: object, member: string): void {
  delete (object as Record<string, unknown>)[member];
}

/** Sets a member to what the types forbid. */
function set(object: object | undefined, member: string, value: unknown): void {
  (object as Record<string, unknown>)[member] = value;
}

const BAD_DURATIONS = ['', '10', '5 m', '-5m', '1d', '9999999h'];
const DURATIONS = [
  'creationTimeout',
  'drainTimeout',
  'healthTimeout',
  'inPlaceUpdateTimeout',
  'machinePreserveTimeout',
];
const BAD_LIMITS = [-1, '5', '-5%', 'many', '', 3_000_000_000];

const machineRows: Row<BuiltMachine>[] = [
  ['no spec', (m) => without(m, 'spec'), 'spec', 'spec is missing'],
  ['no class', (m) => without(m.spec, 'class'), 'spec.class', 'class.name'],
  ['empty class', (m) => set(m.spec, 'class', {}), 'spec.class', 'class.name'],
  ['no class kind', (m) => set(m.spec, 'class', { name: 'c' }), 'spec.class', 'class.kind'],
  ['empty class kind', (m) => set(m.spec, 'class', { kind: '', name: 'c' }), 'spec.class', 'class.kind'],
  ['empty class name', (m) => set(m.spec, 'class', { kind: 'MachineClass', name: '' }), 'spec.class', 'class.name'],
  ['negative retries', (m) => set(m.spec, 'maxEvictRetries', -1), 'spec.maxEvictRetries', 'maxEvictRetries must be 0'],
  ...DURATIONS.map((name): Row<BuiltMachine> => [
    `${name} of 10`,
    (m) => set(m.spec, name, '10'),
    `spec.${name}`,
    `${name} must be a non-negative duration`,
  ]),
  ...BAD_DURATIONS.map((text): Row<BuiltMachine> => [
    `drain timeout "${text}"`,
    (m) => set(m.spec, 'drainTimeout', text),
    'spec.drainTimeout',
    'drainTimeout must be a non-negative duration',
  ]),
];

/** What MachineSets and MachineDeployments have in common. */
const ownerRows: Row<BuiltMachineSet | BuiltMachineDeployment>[] = [
  ['no spec', (o) => without(o, 'spec'), 'spec', 'spec is missing'],
  ['negative replicas', (o) => set(o.spec, 'replicas', -1), 'spec.replicas', 'should be a non-negative integer'],
  ['negative seconds', (o) => set(o.spec, 'minReadySeconds', -1), 'spec.minReadySeconds', 'minReadySeconds must be 0'],
  [
    'negative preservation',
    (o) => set(o.spec, 'autoPreserveFailedMachineMax', -1),
    'spec.autoPreserveFailedMachineMax',
    'autoPreserveFailedMachineMax must be 0',
  ],
  ['no selector', (o) => without(o.spec, 'selector'), 'spec.selector', 'selector is missing'],
  ['empty selector', (o) => set(o.spec, 'selector', {}), 'spec.selector', 'selector is empty'],
  [
    'selector of empty parts',
    (o) => set(o.spec, 'selector', { matchLabels: {}, matchExpressions: [] }),
    'spec.selector',
    'selector is empty',
  ],
  [
    'selector with another value',
    (o) => set(o.spec.selector, 'matchLabels', { pool: 'b' }),
    'spec.selector',
    'selector does not match',
  ],
  [
    'selector with a label that the template lacks',
    (o) => set(o.spec.selector, 'matchLabels', { pool: 'a', zone: 'z' }),
    'spec.selector',
    'selector does not match',
  ],
  ...(
    [
      { key: 'pool', operator: 'In', values: ['b', 'c'] },
      { key: 'zone', operator: 'In', values: ['a'] },
      { key: 'pool', operator: 'NotIn', values: ['b', 'a'] },
      { key: 'zone', operator: 'Exists' },
      { key: 'pool', operator: 'DoesNotExist' },
    ] as const
  ).map((expression): Row<BuiltMachineSet | BuiltMachineDeployment> => [
    `selector with ${expression.key} ${expression.operator}`,
    (o) => set(o.spec.selector, 'matchExpressions', [expression]),
    'spec.selector',
    'selector does not match',
  ]),
  ...(
    [
      { key: 'pool', operator: 'Near', values: ['a'] },
      { key: 'pool', operator: 'In' },
      { key: 'pool', operator: 'Exists', values: ['a'] },
    ] as const
  ).map((expression): Row<BuiltMachineSet | BuiltMachineDeployment> => [
    `selector with ${expression.key} ${expression.operator} and ${'values' in expression ? 'values' : 'no values'}`,
    (o) => set(o.spec.selector, 'matchExpressions', [expression]),
    'spec.selector.matchExpressions',
    'selector.matchExpressions must use',
  ]),
  [
    'template without labels',
    (o) => without(o.spec.template.metadata ?? {}, 'labels'),
    'spec.template.metadata.labels',
    'template has no labels',
  ],
  [
    'template without metadata',
    (o) => without(o.spec.template, 'metadata'),
    'spec.template.metadata.labels',
    'template has no labels',
  ],
  [
    'template without spec',
    (o) => without(o.spec.template, 'spec'),
    'spec.template.spec.class',
    'class does not refer to a MachineClass',
  ],
  [
    'template with an empty class name',
    (o) => set(o.spec.template.spec?.class, 'name', ''),
    'spec.template.spec.class',
    'class does not refer to a MachineClass',
  ],
  [
    'template with a malformed duration',
    (o) => set(o.spec.template.spec, 'healthTimeout', 'soon'),
    'spec.template.spec.healthTimeout',
    'healthTimeout must be a non-negative duration',
  ],
  [
    'template with negative retries',
    (o) => set(o.spec.template.spec, 'maxEvictRetries', -3),
    'spec.template.spec.maxEvictRetries',
    'maxEvictRetries must be 0',
  ],
];

const setRows: Row<BuiltMachineSet>[] = [
  ...ownerRows,
  ['no template', (s) => without(s.spec, 'template'), 'spec.template.metadata.labels', 'template has no labels'],
];

const HASH = 'machine-template-hash';

/** What is copied from a MachineSet, whose selector does name its hash. */
function naming(expression?: object): (d: BuiltMachineDeployment) => void {
  return ({ spec }) => {
    const labels = spec.template.metadata?.labels;
    if (expression === undefined) set(spec.selector?.matchLabels, HASH, '1');
    else set(spec.selector, 'matchExpressions', [{ key: HASH, ...expression }]);
    if (!JSON.stringify(expression ?? '').includes('Not')) set(labels, HASH, '1');
  };
}

const deploymentRows: Row<BuiltMachineDeployment>[] = [
  ...ownerRows,
  ['a selector of the hash label', naming(), 'spec.selector', 'selector uses label machine-template-hash'],
  [
    'a selector of some hash labels',
    naming({ operator: 'In', values: ['1', '2'] }),
    'spec.selector',
    'selector uses label machine-template-hash',
  ],
  [
    'a selector of no hash label',
    naming({ operator: 'DoesNotExist' }),
    'spec.selector',
    'selector uses label machine-template-hash',
  ],
  [
    'negative history',
    (d) => set(d.spec, 'revisionHistoryLimit', -1),
    'spec.revisionHistoryLimit',
    'revisionHistoryLimit must be 0',
  ],
  [
    'negative deadline',
    (d) => set(d.spec, 'progressDeadlineSeconds', -1),
    'spec.progressDeadlineSeconds',
    'progressDeadlineSeconds must be 0',
  ],
  ['no strategy', (d) => without(d.spec, 'strategy'), 'spec.strategy.type', 'strategy.type must be'],
  ['no strategy type', (d) => without(d.spec.strategy, 'type'), 'spec.strategy.type', 'strategy.type must be'],
  ['unknown strategy', (d) => set(d.spec.strategy, 'type', 'Rolling'), 'spec.strategy.type', 'strategy.type must be'],
  [
    'rolling without limits',
    (d) => set(d.spec, 'strategy', { type: 'RollingUpdate' }),
    'spec.strategy.rollingUpdate',
    'strategy.rollingUpdate must set maxSurge and maxUnavailable',
  ],
  [
    'rolling without surge',
    (d) => set(d.spec, 'strategy', { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } }),
    'spec.strategy.rollingUpdate',
    'strategy.rollingUpdate must set maxSurge and maxUnavailable',
  ],
  [
    'rolling without unavailability',
    (d) => set(d.spec, 'strategy', { type: 'RollingUpdate', rollingUpdate: { maxSurge: '10%' } }),
    'spec.strategy.rollingUpdate',
    'strategy.rollingUpdate must set maxSurge and maxUnavailable',
  ],
  ...(['maxSurge', 'maxUnavailable'] as const).flatMap((name) =>
    BAD_LIMITS.map((value): Row<BuiltMachineDeployment> => [
      `${name} of ${JSON.stringify(value)}`,
      (d) => set(d.spec.strategy.rollingUpdate, name, value),
      `spec.strategy.rollingUpdate.${name}`,
      `${name} must be a non-negative number`,
    ]),
  ),
  [
    'in place without limits',
    (d) => set(d.spec, 'strategy', { type: 'InPlaceUpdate', inPlaceUpdate: { orchestrationType: 'Auto' } }),
    'spec.strategy.inPlaceUpdate',
    'strategy.inPlaceUpdate must set maxSurge and maxUnavailable',
  ],
  [
    'in place without orchestration',
    (d) => set(d.spec, 'strategy', { type: 'InPlaceUpdate', inPlaceUpdate: { maxSurge: 0, maxUnavailable: 1 } }),
    'spec.strategy.inPlaceUpdate.orchestrationType',
    'orchestrationType must be Auto or Manual',
  ],
  [
    'in place with unknown orchestration',
    (d) =>
      set(d.spec, 'strategy', {
        type: 'InPlaceUpdate',
        inPlaceUpdate: { maxSurge: 0, maxUnavailable: 1, orchestrationType: 'Robot' },
      }),
    'spec.strategy.inPlaceUpdate.orchestrationType',
    'orchestrationType must be Auto or Manual',
  ],
  [
    'in place with a negative limit',
    (d) =>
      set(d.spec, 'strategy', {
        type: 'InPlaceUpdate',
        inPlaceUpdate: { maxSurge: 0, maxUnavailable: -1, orchestrationType: 'Manual' },
      }),
    'spec.strategy.inPlaceUpdate.maxUnavailable',
    'maxUnavailable must be a non-negative number',
  ],
];

const classRows: Row<BuiltMachineClass>[] = [
  ...['cpu', 'gpu', 'memory'].map((name): Row<BuiltMachineClass> => [
    `capacity without ${name}`,
    (c) => without(c.nodeTemplate.capacity, name),
    'nodeTemplate.capacity',
    `nodeTemplate.capacity must contain ${name}`,
  ]),
  ...['instanceType', 'region', 'zone'].map((name): Row<BuiltMachineClass> => [
    `empty ${name}`,
    (c) => set(c.nodeTemplate, name, ''),
    `nodeTemplate.${name}`,
    `nodeTemplate.${name} is empty`,
  ]),
];

function rows<T>(build: (change: (object: T) => void) => BrokenObject['object'], table: readonly Row<T>[]) {
  return table.map(([what, change, field, message]): BrokenObject => ({ what, object: build(change), field, message }));
}

/** One object for each thing that is refused at creation, each wrong in one way only. */
export const BROKEN_OBJECTS: readonly BrokenObject[] = [
  ...rows(machine, machineRows),
  ...rows(machineSet, setRows),
  ...rows(machineDeployment, deploymentRows),
  ...rows(machineClass, classRows),
];

/** One object for each thing that is refused at creation although it can be obeyed, and is when it was stored before. */
export const UNWISE_OBJECTS: readonly BrokenObject[] = rows(machineDeployment, [
  ...(
    [
      ['any hash label', { operator: 'Exists' }],
      ['all but some hash labels', { operator: 'NotIn', values: ['1'] }],
    ] as const
  ).map(([which, expression]): Row<BuiltMachineDeployment> => [
    `a selector of ${which}`,
    naming(expression),
    'spec.selector',
    'selector uses label machine-template-hash',
  ]),
  ...(['150%', '101%', '0200%'] as const).flatMap((share): Row<BuiltMachineDeployment>[] => [
    [
      `maxUnavailable of ${share}`,
      (d) => set(d.spec.strategy.rollingUpdate, 'maxUnavailable', share),
      'spec.strategy.rollingUpdate.maxUnavailable',
      'maxUnavailable must be at most 100%',
    ],
    [
      `in place with maxUnavailable of ${share}`,
      (d) =>
        set(d.spec, 'strategy', {
          type: 'InPlaceUpdate',
          inPlaceUpdate: { maxSurge: 0, maxUnavailable: share, orchestrationType: 'Auto' },
        }),
      'spec.strategy.inPlaceUpdate.maxUnavailable',
      'maxUnavailable must be at most 100%',
    ],
  ]),
]);
