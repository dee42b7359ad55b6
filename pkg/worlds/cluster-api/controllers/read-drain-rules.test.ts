import { describe, expect, test } from '@jest/globals';

import type { MachineDrainRule } from '../api/drain-rule.ts';
import type { Pod } from '../../../apis/wire.ts';
import type { DrainedMachine } from '../../../controllers/machine-facts/pod-rules.ts';
import { podRulesOf } from './read-drain-rules.ts';

const META = { uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
const MACHINE: DrainedMachine = { namespace: 'ns', labels: { os: 'linux' }, clusterLabels: { stage: 'production' } };

const rule = (name: string, spec: MachineDrainRule['spec']): MachineDrainRule => ({
  metadata: { ...META, name, namespace: 'ns' },
  ...(spec !== undefined && { spec }),
});
const pod = (labels: Record<string, string>, namespace = 'apps'): Pod => ({
  metadata: { ...META, name: 'p', namespace, labels },
});
const matching = (key: string, value: string) => ({ matchLabels: { [key]: value } });

const SKIP = rule('b-skip', { drain: { behavior: 'Skip' }, pods: [{ selector: matching('app', 'log') }] });
const LATE = rule('a-late', { drain: { behavior: 'Drain', order: 10 }, pods: [{ selector: matching('tier', 'db') }] });
const OF_WINDOWS = rule('a-windows', {
  drain: { behavior: 'Skip' },
  machines: [{ selector: matching('os', 'windows') }],
});
const OF_NAMESPACE = rule('c-jobs', {
  drain: { behavior: 'WaitCompleted' },
  pods: [{ namespaceSelector: matching('kubernetes.io/metadata.name', 'jobs') }],
});
const OF_TEAM = rule('d-team', {
  drain: { behavior: 'Skip' },
  machines: [{ selector: matching('os', 'linux'), clusterSelector: matching('stage', 'production') }],
  pods: [{ selector: matching('app', 'web'), namespaceSelector: matching('team', 'a') }],
});
const ALL = [OF_TEAM, OF_NAMESPACE, SKIP, OF_WINDOWS, LATE];

describe('what a drain does about a pod', () => {
  test.each<{ what: string; pod: Pod; namespaceLabels?: Record<string, string>; want: object }>([
    { what: 'leaves without a rule for it', pod: pod({}), want: { behavior: 'leaves', order: 0 } },
    {
      what: 'stays by its label',
      pod: pod({ 'cluster.x-k8s.io/drain': 'skip' }),
      want: { behavior: 'stays', by: 'label cluster.x-k8s.io/drain' },
    },
    {
      what: 'stays by its label as the API spells it',
      pod: pod({ 'cluster.x-k8s.io/drain': 'Skip' }),
      want: { behavior: 'stays', by: 'label cluster.x-k8s.io/drain' },
    },
    {
      what: 'completes by its label',
      pod: pod({ 'cluster.x-k8s.io/drain': 'wait-completed' }),
      want: { behavior: 'completes', by: 'label cluster.x-k8s.io/drain' },
    },
    {
      what: 'leaves with a label that means nothing',
      pod: pod({ 'cluster.x-k8s.io/drain': 'never' }),
      want: { behavior: 'leaves', order: 0 },
    },
    {
      what: 'obeys its label before any rule',
      pod: pod({ 'cluster.x-k8s.io/drain': 'wait-completed', app: 'log' }),
      want: { behavior: 'completes', by: 'label cluster.x-k8s.io/drain' },
    },
    {
      what: 'stays by a rule',
      pod: pod({ app: 'log' }),
      want: { behavior: 'stays', by: `MachineDrainRule ${SKIP.metadata.name}` },
    },
    {
      what: 'obeys the first rule by name',
      pod: pod({ app: 'log', tier: 'db' }),
      want: { behavior: 'leaves', order: 10, by: `MachineDrainRule ${LATE.metadata.name}` },
    },
    {
      what: 'completes by the name of its namespace',
      pod: pod({}, 'jobs'),
      want: { behavior: 'completes', by: `MachineDrainRule ${OF_NAMESPACE.metadata.name}` },
    },
    {
      what: 'stays by the labels of Machine, Cluster, pod and namespace',
      pod: pod({ app: 'web' }),
      namespaceLabels: { team: 'a' },
      want: { behavior: 'stays', by: `MachineDrainRule ${OF_TEAM.metadata.name}` },
    },
    {
      what: 'leaves where one of them differs',
      pod: pod({ app: 'web' }),
      namespaceLabels: { team: 'b' },
      want: { behavior: 'leaves', order: 0 },
    },
  ])('it $what', ({ pod: one, namespaceLabels, want }) => {
    expect(podRulesOf(ALL, MACHINE).ruleOf(one, namespaceLabels)).toEqual(want);
  });

  test('it leaves although a rule of another namespace makes no sense, or would keep it', () => {
    const others = [SKIP, rule('z', { drain: { behavior: 'Evict' } })].map((one) => ({
      ...one,
      metadata: { ...one.metadata, namespace: 'other' },
    }));

    expect(podRulesOf(others, MACHINE).ruleOf(pod({ app: 'log' }))).toEqual({ behavior: 'leaves', order: 0 });
  });

  test.each<{ what: string; rules: readonly MachineDrainRule[]; machine?: DrainedMachine; want: boolean }>([
    { what: 'not for names of namespaces', rules: [OF_NAMESPACE, SKIP], want: false },
    { what: 'for other labels of namespaces', rules: [OF_TEAM], want: true },
    {
      what: 'not for rules of Machines of other Clusters',
      rules: [OF_TEAM],
      machine: { ...MACHINE, clusterLabels: {} },
      want: false,
    },
  ])('namespaces are read $what', ({ rules, machine = MACHINE, want }) => {
    expect(podRulesOf(rules, machine).needsNamespaces).toBe(want);
  });

  test.each<{ what: string; spec: MachineDrainRule['spec']; why: string }>([
    { what: 'an unknown behavior', spec: { drain: { behavior: 'Evict' } }, why: 'unknown spec.drain.behavior Evict' },
    {
      what: 'an unknown operator',
      spec: {
        drain: { behavior: 'Skip' },
        pods: [{ selector: { matchExpressions: [{ key: 'a', operator: 'Like' as 'In', values: ['b'] }] } }],
      },
      why: 'unknown operator Like at key a',
    },
    {
      what: 'a selector that is no selector, for other Machines',
      spec: {
        drain: { behavior: 'Skip' },
        machines: [
          { selector: matching('os', 'windows') },
          { clusterSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
        ],
      },
      why: 'operator In at key a needs values',
    },
  ])('no drain begins with $what in any rule', ({ spec, why }) => {
    const invalid = (): unknown => podRulesOf([SKIP, rule('bad', spec)], MACHINE);

    expect(invalid).toThrow(/^MachineDrainRule bad: .*; correct or delete it$/);
    expect(invalid).toThrow(why);
  });
});
