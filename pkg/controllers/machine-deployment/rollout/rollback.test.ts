import { describe, expect, test } from '@jest/globals';

import {
  CHANGED_ON_CREATION_ANNOTATION,
  DELETION_POLICY_ANNOTATION,
  PREFER_NO_SCHEDULE_KEY,
  REVISION_ANNOTATION,
  TEMPLATE_HASH_LABEL,
  UPDATE_ORDER_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { machine, machineDeployment, machineSet, node } from '../../../../test/builders.ts';
import { DeploymentWorld, passOver } from '../../../../test/fakes/replicas-world.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { controllerReference } from '../../../work/reconcile/ownership.ts';
import { stop } from '../../../work/reconcile/result.ts';
import { templateHash } from '../sets/template-hash.ts';
import { rollBack, rollbackChange, rollbackTarget } from './rollback.ts';
import { AGAIN } from './rollout.ts';

const revision = (text: string): ReturnType<typeof machineSet> =>
  machineSet((s) => {
    s.metadata.name = `s-${text}`;
    s.metadata.annotations[REVISION_ANNOTATION] = text;
    s.spec.template.spec = { class: { kind: 'MachineClass', name: `class-of-${text}` } };
  });

test.each([
  { present: '10', old: ['3', '9'], to: 0, target: 's-9' },
  { present: '10', old: ['3', '9'], to: 3, target: 's-3' },
  { present: '10', old: ['3', '9'], to: 10, target: 's-10' },
  { present: '10', old: ['3', '9'], to: 4, target: undefined },
  { present: '3', old: [], to: 0, target: undefined },
  { present: '3', old: ['x', ''], to: 0, target: undefined },
  { present: undefined, old: ['3', '10', '9'], to: 0, target: 's-10' },
  { present: undefined, old: ['3', '10', '9'], to: 9, target: 's-9' },
  { present: undefined, old: [], to: 0, target: undefined },
])('from revision $present a rollback to $to finds $target among $old', ({ present, old, to, target }) => {
  const newSet = present === undefined ? undefined : revision(present);
  const deployment = machineDeployment();
  expect(rollbackTarget({ deployment, newSet, oldSets: old.map(revision) }, to)?.metadata.name).toBe(target);
});

test('a rollback without a revision passes over a second set of the present template', () => {
  const deployment = machineDeployment();
  const second = machineSet((s) => {
    s.metadata.annotations[REVISION_ANNOTATION] = '2';
    s.spec.template.spec = { ...deployment.spec.template.spec };
  });

  const found = rollbackTarget({ deployment, newSet: machineSet(), oldSets: [revision('1'), second] }, 0);

  expect(found?.metadata.name).toBe('s-1');
});

test.each([
  { to: 0, target: 's-1' },
  { to: 2, target: 's-2' },
])(
  'a set of the present template that was changed on its creation is no revision that a rollback to $to goes to unnamed',
  ({ to, target }) => {
    const deployment = machineDeployment();
    const changed = revision('2');
    changed.metadata.labels = { [TEMPLATE_HASH_LABEL]: templateHash(deployment.spec.template, undefined) };
    changed.spec.template.spec = { class: { kind: 'MachineClass', name: 'by a webhook' } };

    const found = rollbackTarget({ deployment, newSet: undefined, oldSets: [revision('1'), changed] }, to);

    expect(found?.metadata.name).toBe(target);
  },
);

test.each([
  { to: 0, target: 's-1' },
  { to: 2, target: 's-2' },
])('nor is one of an earlier template, that is noted, a revision that a rollback to $to goes to', ({ to, target }) => {
  const changed = revision('2');
  changed.metadata.annotations[CHANGED_ON_CREATION_ANNOTATION] = 'true';
  const oldSets = [revision('1'), changed];

  const found = rollbackTarget({ deployment: machineDeployment(), newSet: revision('4'), oldSets }, to);

  expect(found?.metadata.name).toBe(target);
});

test('a rollback brings no deletion policy and no update order back, and takes none away', () => {
  const target = machineSet((s) => {
    s.metadata.annotations[DELETION_POLICY_ANNOTATION] = 'forced';
    s.metadata.annotations['example.com/note'] = 'old';
  });
  const deployment = machineDeployment((d) => {
    d.metadata.annotations = { [UPDATE_ORDER_ANNOTATION]: 'pool/1', 'example.com/other': 'x' };
  });

  const { annotations } = rollbackChange(deployment, target).metadata ?? {};

  expect(annotations).toEqual({ 'example.com/note': 'old', 'example.com/other': null });
});

describe('a rollback', () => {
  const OLD = { class: { kind: 'MachineClass', name: 'class-0' } };
  const TAINT = { key: PREFER_NO_SCHEDULE_KEY, value: 'True', effect: 'PreferNoSchedule' };

  /** From revision 2, whose set is the present one, to 1, whose Nodes are tainted. */
  function scene({
    to = 0,
    names = ['m-1'],
    isNoted = true,
  }: {
    to?: number;
    names?: readonly string[];
    isNoted?: boolean;
  }) {
    const deployment = machineDeployment((d) => void (d.spec.rollbackTo = { revision: to }));
    const [old, now] = ['1', '2'].map((text) =>
      machineSet((s) => {
        Object.assign(s.metadata, { name: `s-${text}`, uid: `s-${text}` });
        s.metadata.ownerReferences = [
          controllerReference(deployment, 'machine.sapcloud.io/v1alpha1', 'MachineDeployment'),
        ];
        s.metadata.annotations[REVISION_ANNOTATION] = text;
        if (text === '1') {
          s.spec.template.spec = OLD;
          if (isNoted) s.metadata.annotations[PREFER_NO_SCHEDULE_KEY] = 'True';
        }
      }),
    );
    if (old === undefined || now === undefined) throw new Error('two were asked for');
    const deps = new DeploymentWorld(deployment, {
      sets: [old, now],
      machines: names.map((name) =>
        machine((m) => {
          Object.assign(m.metadata, { name, uid: name, labels: { pool: 'a', node: name } });
          m.metadata.ownerReferences = [controllerReference(old, 'machine.sapcloud.io/v1alpha1', 'MachineSet')];
        }),
      ),
      nodes: names.map((name) =>
        node((n) => {
          Object.assign(n.metadata, { name, uid: name });
          n.spec.taints = [TAINT];
        }),
      ),
    });
    const run = () => rollBack(deps, { ...passOver(deployment), observed: deps.observed(deployment) });
    const written = (): readonly string[] => deps.client.writes.map(({ what }) => what);
    return { deps, run, written };
  }

  test('frees the Nodes of its set, takes the note off, and writes template and end of the request in one', async () => {
    const { deps, run, written } = scene({});

    expect(await run()).toEqual(stop);

    expect(deps.targetClient.writes).toMatchObject([{ what: 'nodes/m-1', body: { spec: { taints: [] } } }]);
    expect(written()).toEqual(['machinesets/s-1', 'machinedeployments/deployment-1']);
    expect(deps.client.writes[1]?.body).toMatchObject({
      spec: { rollbackTo: null, template: { spec: { class: { name: 'class-0' } } } },
    });
  });

  test('keeps the note while a Node has the taint, and does not wait for it', async () => {
    const { deps, run, written } = scene({});
    deps.targetClient.failures.push(new ApiError(403, 'Forbidden', 'no'));

    expect(await run()).toEqual(stop);

    expect(written()).toEqual(['machinedeployments/deployment-1']);
  });

  test('writes nothing to a set without the note', async () => {
    const { run, written } = scene({ isNoted: false });

    await run();

    expect(written()).toEqual(['machinedeployments/deployment-1']);
  });

  test('of more Nodes than a pass can write comes back before anything else', async () => {
    const { run, written } = scene({ names: Array.from({ length: 101 }, (_unused, i) => `m-${i}`) });

    expect(await run()).toEqual(AGAIN);

    expect(written()).toEqual([]);
  });

  test('to the present revision changes no template, and says so', async () => {
    const { deps, run } = scene({ to: 2 });

    await run();

    expect(deps.client.writes).toMatchObject([{ body: { spec: { rollbackTo: null } } }]);
    expect(JSON.stringify(deps.client.writes)).not.toContain('template');
    expect(deps.events).toEqual(['DeploymentRollbackTemplateUnchanged']);
  });

  test('to a revision that is none ends the request, and says so', async () => {
    const { deps, run } = scene({ to: 7 });

    await run();

    expect(deps.client.writes).toMatchObject([{ body: { spec: { rollbackTo: null } } }]);
    expect(deps.targetClient.writes).toEqual([]);
    expect(deps.events).toEqual(['DeploymentRollbackRevisionNotFound']);
  });
});
