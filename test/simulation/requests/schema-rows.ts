import { deployment, machine, machineClass, machineSet } from './objects.ts';
import { get, merge, post, type Row } from './row.ts';

const causes = (why: string): NonNullable<Row['kept']> => ({ what: 'causes', why });
const SHOWN = causes('how Go shows a value');

/** Defaults, pruning, types and rules of the project's definitions, and scales. */
export const SCHEMA_ROWS: readonly Row[] = [
  post('a MachineDeployment', 'machinedeployments', deployment('d'), { save: 'd' }),
  post('without replicas, which get their default', 'machinesets', machineSet('s', { replicas: undefined }), {
    save: 's',
  }),
  post('replicas that are null', 'machinesets', machineSet('null', { replicas: null })),
  post(
    'null where neither it nor a default is allowed',
    'machinedeployments',
    deployment('nulls', { rollbackTo: null, revisionHistoryLimit: null, minReadySeconds: null }),
  ),
  post('replicas that are a text', 'machinesets', machineSet('x', { replicas: '3' }), { kept: causes('said twice') }),
  post('replicas that are no integer', 'machinesets', machineSet('x', { replicas: 1.5 }), { kept: SHOWN }),
  post('replicas below zero', 'machinesets', machineSet('x', { replicas: -1 })),
  post('replicas beyond an int32', 'machinesets', machineSet('x', { replicas: 3_000_000_000 }), { kept: SHOWN }),
  post('no selector', 'machinesets', machineSet('x', { selector: undefined }), { kept: SHOWN }),
  post('an empty selector', 'machinesets', machineSet('x', { selector: {} }), { kept: SHOWN }),
  post(
    'a selector that selects other labels',
    'machinesets',
    machineSet('x', { selector: { matchLabels: { pool: 'b' } } }),
    { kept: SHOWN },
  ),
  post(
    'an expression that is none',
    'machinesets',
    machineSet('x', { selector: { matchExpressions: [{ key: 'pool', operator: 'Near' }] } }),
    { kept: SHOWN },
  ),
  post(
    'an expression with In',
    'machinesets',
    machineSet('in', { selector: { matchExpressions: [{ key: 'pool', operator: 'In', values: ['a', 'b'] }] } }),
  ),
  post(
    'an expression with NotIn',
    'machinesets',
    machineSet('x', { selector: { matchExpressions: [{ key: 'pool', operator: 'NotIn', values: ['a'] }] } }),
    { kept: SHOWN },
  ),
  post(
    'an expression without an operator',
    'machinesets',
    machineSet('x', { selector: { matchExpressions: [{ key: 'pool' }] } }),
    { kept: SHOWN },
  ),
  post(
    'a template without labels',
    'machinesets',
    machineSet('x', { template: { spec: { class: { kind: 'MachineClass', name: 'c' } } } }),
    { kept: SHOWN },
  ),
  post(
    'a template without a class',
    'machinesets',
    machineSet('x', { template: { metadata: { labels: { pool: 'a' } }, spec: {} } }),
    { kept: SHOWN },
  ),
  post('no strategy', 'machinedeployments', deployment('x', { strategy: undefined }), { kept: SHOWN }),
  post('an unknown strategy', 'machinedeployments', deployment('x', { strategy: { type: 'BigBang' } }), {
    kept: SHOWN,
  }),
  post(
    'a rolling update without numbers',
    'machinedeployments',
    deployment('x', { strategy: { type: 'RollingUpdate' } }),
    { kept: SHOWN },
  ),
  post(
    'a percentage',
    'machinedeployments',
    deployment('percent', {
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '50%', maxUnavailable: 0 } },
    }),
  ),
  post(
    'a percentage above 100',
    'machinedeployments',
    deployment('x', { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: '150%' } } }),
    { kept: SHOWN },
  ),
  post(
    'a percentage that is none',
    'machinedeployments',
    deployment('x', { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 'some', maxUnavailable: 1 } } }),
    { kept: SHOWN },
  ),
  post(
    'a surge that is a truth',
    'machinedeployments',
    deployment('x', { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: true, maxUnavailable: 1 } } }),
    { kept: causes('said twice') },
  ),
  post('Recreate', 'machinedeployments', deployment('recreate', { strategy: { type: 'Recreate' } })),
  post('an unknown field, which is dropped', 'machinedeployments', deployment('pruned', { unknown: { a: 1 } })),
  post(
    'a duration',
    'machines',
    machine('timed', { spec: { class: { kind: 'MachineClass', name: 'c' }, drainTimeout: '1h2m3.5s' } }),
  ),
  post(
    'a duration that is none',
    'machines',
    machine('x', { spec: { class: { kind: 'MachineClass', name: 'c' }, drainTimeout: 'soon' } }),
  ),
  post(
    'a duration below zero',
    'machines',
    machine('x', { spec: { class: { kind: 'MachineClass', name: 'c' }, drainTimeout: '-1s' } }),
  ),
  post(
    'a duration that is a number',
    'machines',
    machine('x', { spec: { class: { kind: 'MachineClass', name: 'c' }, drainTimeout: 5 } }),
  ),
  post('a Machine without a spec', 'machines', machine('x', { spec: undefined }), { kept: SHOWN }),
  post('a Machine without a class', 'machines', machine('x', { spec: {} }), { kept: SHOWN }),
  post('a class of an empty name', 'machines', machine('x', { spec: { class: { kind: 'MachineClass', name: '' } } }), {
    kept: SHOWN,
  }),
  post(
    'retries below zero',
    'machines',
    machine('x', { spec: { class: { kind: 'MachineClass', name: 'c' }, maxEvictRetries: -1 } }),
  ),
  post(
    'what a node template says freely',
    'machines',
    machine('free-form', {
      spec: {
        class: { kind: 'MachineClass', name: 'c' },
        nodeTemplate: { metadata: { labels: { a: 'b' }, anything: [1] } },
      },
    }),
  ),
  post(
    'a taint without an effect',
    'machines',
    machine('x', {
      spec: { class: { kind: 'MachineClass', name: 'c' }, nodeTemplate: { spec: { taints: [{ key: 'k' }] } } },
    }),
    { kept: SHOWN },
  ),
  post(
    'a provider ID',
    'machines',
    machine('identified', { spec: { class: { kind: 'MachineClass', name: 'c' }, providerID: 'sim:///1' } }),
  ),
  merge('it runs', 'machines/identified/status', { status: { currentStatus: { phase: 'Running' } } }),
  merge(
    'another provider ID of one that runs',
    'machines/identified',
    { spec: { providerID: 'sim:///2' } },
    { kept: SHOWN },
  ),
  merge('a condition', 'machines/identified/status', { status: { conditions: [{ type: 'Ready', status: 'True' }] } }),
  merge(
    'a condition without a status',
    'machines/identified/status',
    { status: { conditions: [{ type: 'Ready' }] } },
    { kept: SHOWN },
  ),
  merge('an unknown field of the status, which is dropped', 'machines/identified/status', {
    status: { unknown: 1, node: 'n' },
  }),

  post('a class', 'machineclasses', machineClass('c')),
  post(
    'a class whose provider spec is free',
    'machineclasses',
    machineClass('free', { providerSpec: { deep: { list: [1, { a: null }] } } }),
  ),
  post('a class with an unknown field', 'machineclasses', machineClass('pruned', { unknown: 1 })),
  post(
    'a node template',
    'machineclasses',
    machineClass('templated', {
      nodeTemplate: { capacity: { cpu: 1, memory: '1Gi', gpu: 0 }, instanceType: 't', region: 'r', zone: 'z' },
    }),
  ),
  post(
    'a node template without gpu',
    'machineclasses',
    machineClass('x', {
      nodeTemplate: { capacity: { cpu: 1, memory: '1Gi' }, instanceType: 't', region: 'r', zone: 'z' },
    }),
    { kept: SHOWN },
  ),
  post(
    'a node template with an empty zone',
    'machineclasses',
    machineClass('x', {
      nodeTemplate: { capacity: { cpu: 1, memory: '1Gi', gpu: 0 }, instanceType: 't', region: 'r', zone: '' },
    }),
  ),
  post(
    'a capacity that is none',
    'machineclasses',
    machineClass('x', {
      nodeTemplate: { capacity: { cpu: 'many', memory: '1Gi', gpu: 0 }, instanceType: 't', region: 'r', zone: 'z' },
    }),
    { kept: SHOWN },
  ),
  merge('a class has no status of its own', 'machineclasses/c/status', { status: {} }),
  merge('a provider spec counts for the generation', 'machineclasses/c', { providerSpec: { zone: 'b' } }),
  merge('labels do not', 'machineclasses/c', { metadata: { labels: { a: 'b' } } }),

  post('a policy', 'nodelabelpolicies', {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'NodeLabelPolicy',
    metadata: { name: 'p' },
    spec: { allowed: [{ key: 'a' }] },
  }),
  post('a policy without a spec', 'nodelabelpolicies', {
    apiVersion: 'machine.sapcloud.io/v1alpha1',
    kind: 'NodeLabelPolicy',
    metadata: { name: 'x' },
  }),

  get('a scale', 'machinesets/s/scale'),
  merge('a scale that changes', 'machinesets/s/scale', { spec: { replicas: 5 } }),
  merge('a scale that stays', 'machinesets/s/scale', { spec: { replicas: 5 } }),
  merge('a scale below zero', 'machinesets/s/scale', { spec: { replicas: -1 } }, { kept: causes('another schema') }),
  merge('a scale of an old resourceVersion', 'machinesets/s/scale', {
    metadata: { resourceVersion: '1' },
    spec: { replicas: 6 },
  }),
  get('what was scaled', 'machinesets/s'),
  get('a kind without scale', 'machines/timed/scale'),
  merge('the status of a set', 'machinesets/s/status', { status: { replicas: 3, readyReplicas: 2 } }),
  get('a scale that shows it', 'machinesets/s/scale'),
  merge(
    'a selector that changes',
    'machinesets/s',
    { spec: { selector: { matchLabels: { pool: 'b' } } } },
    { kept: SHOWN },
  ),
  merge('replicas below zero by a patch', 'machinesets/s', { spec: { replicas: -3 } }),
  merge('a strategy that changes', 'machinedeployments/d', {
    spec: { strategy: { type: 'Recreate', rollingUpdate: null } },
  }),
  merge('a rollback', 'machinedeployments/d', { spec: { rollbackTo: { revision: 1 } } }),
  merge('and its end', 'machinedeployments/d', { spec: { rollbackTo: null } }),
];
