import { describe, expect, test } from '@jest/globals';

import { type BuiltMachineClass, machine, machineClass, machineDeployment, node } from '../../test/builders.ts';
import { LearnedShapes } from './learned.ts';
import { nodeBytes } from './node-bytes.ts';
import { isTemplate, templateNode } from './template.ts';

const deploymentOf = (labels: Record<string, string> = {}) =>
  machineDeployment((d) => {
    d.metadata.name = 'pool';
    d.spec.template.spec = {
      class: { kind: 'MachineClass', name: 'class-1' },
      nodeTemplate: {
        metadata: { labels: { tier: 'db', ...labels }, annotations: { note: 'x' } },
        spec: { taints: [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }] },
      },
    };
  });
const deployment = deploymentOf();
const classOf = (change: (c: BuiltMachineClass) => void = () => undefined) =>
  machineClass((c) => {
    c.metadata.generation = 1;
    c.nodeTemplate = {
      capacity: { cpu: 4, memory: '16Gi', gpu: '1', 'ephemeral-storage': '50Gi' },
      virtualCapacity: { 'example.com/fuse': '10' },
      instanceType: 'm4',
      region: 'eu',
      zone: 'eu-1',
      architecture: 'arm64',
    };
    change(c);
  });
const template = (facts: Partial<Parameters<typeof templateNode>[0]> = {}) =>
  templateNode({ id: 'pool', deployment, machineClass: classOf(), learned: undefined, ...facts });

describe('the template of a group', () => {
  const announced = {
    nodeTemplate: {
      capacity: { cpu: '2', memory: '8Gi' },
      instanceType: '',
      region: '',
      zone: '',
      architecture: 'arm64',
    },
    os: 'windows',
  };

  test('is what the provider announces where the class says nothing, less what the class reserves', () => {
    const silent = classOf((c) => {
      Reflect.deleteProperty(c, 'nodeTemplate');
      c.metadata.annotations = { 'machine.sapcloud.io/reserved-resources': 'cpu=500m' };
    });

    expect(template({ machineClass: silent })).toHaveProperty('reason');
    expect(template({ machineClass: silent, announced })).toMatchObject({
      capacity: { cpu: '2', memory: '8Gi', pods: '110' },
      allocatable: { cpu: '1500m', memory: '8Gi' },
      os: 'windows',
      architecture: 'arm64',
    });
    // What the class says itself counts.
    expect(template({ announced })).toMatchObject({ capacity: { cpu: '4' }, architecture: 'arm64' });
  });

  test('is what the class says, with labels and taints of the Machines', () => {
    const capacity = {
      cpu: '4',
      memory: '16Gi',
      pods: '110',
      'ephemeral-storage': '50Gi',
      'nvidia.com/gpu': '1',
      'example.com/fuse': '10',
    };
    expect(template()).toEqual({
      name: 'pool-template',
      labels: {
        tier: 'db',
        'kubernetes.io/arch': 'arm64',
        'beta.kubernetes.io/arch': 'arm64',
        'kubernetes.io/os': 'linux',
        'beta.kubernetes.io/os': 'linux',
        'node.kubernetes.io/instance-type': 'm4',
        'beta.kubernetes.io/instance-type': 'm4',
        'topology.kubernetes.io/region': 'eu',
        'failure-domain.beta.kubernetes.io/region': 'eu',
        'topology.kubernetes.io/zone': 'eu-1',
        'failure-domain.beta.kubernetes.io/zone': 'eu-1',
        'kubernetes.io/hostname': 'pool-template',
      },
      annotations: { note: 'x' },
      taints: [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }],
      capacity,
      allocatable: capacity,
      os: 'linux',
      architecture: 'arm64',
    });
  });

  test('has no GPU where the class says 0, and as many pods as it says', () => {
    const found = template({
      machineClass: classOf((c) => (c.nodeTemplate.capacity = { cpu: '1', memory: '1Gi', gpu: 0, pods: '20' })),
    });

    expect(isTemplate(found) && found.capacity).toEqual({
      cpu: '1',
      memory: '1Gi',
      pods: '20',
      'example.com/fuse': '10',
    });
  });

  test('has the resources that Nodes of the class were seen to have', () => {
    const learned = { capacity: { cpu: '4' }, allocatable: { cpu: '3900m' }, labels: { 'kubernetes.io/os': 'linux' } };

    expect(template({ learned })).toMatchObject({
      capacity: { cpu: '4' },
      allocatable: { cpu: '3900m' },
      architecture: 'arm64',
    });
    const withoutSaid = classOf((c) => delete (c as { nodeTemplate?: unknown }).nodeTemplate);
    expect(template({ learned, machineClass: withoutSaid })).toMatchObject({ allocatable: { cpu: '3900m' } });
  });

  test.each([
    { what: 'where Nodes of the class were seen', zone: undefined, want: 'eu-1' },
    { what: 'where the group has its Nodes, too', zone: 'eu-1', want: 'eu-1' },
    { what: 'not known of a group in another zone', zone: 'eu-2', want: undefined },
  ])('volumes are $what', ({ zone, want }) => {
    const ofVolumes = 'topology.ebs.csi.aws.com/zone';
    const learned = {
      capacity: { cpu: '4' },
      allocatable: { cpu: '4' },
      labels: { 'topology.kubernetes.io/zone': 'eu-1', [ofVolumes]: 'eu-1' },
    };
    const inZone = deploymentOf(zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone });

    const found = template({ learned, deployment: inZone });

    expect(isTemplate(found) && found.labels[ofVolumes]).toBe(want);
    expect(isTemplate(found) && found.labels['topology.kubernetes.io/zone']).toBe(zone ?? 'eu-1');
  });

  test.each([
    {
      what: 'no class',
      machineClass: undefined,
      says: 'MachineClass class-1 of MachineDeployment pool does not exist',
    },
    {
      what: 'a class without nodeTemplate',
      machineClass: classOf((c) => delete (c as { nodeTemplate?: unknown }).nodeTemplate),
      says: 'set nodeTemplate.capacity of the class, with cpu and memory',
    },
    {
      what: 'a class that does not say how much memory',
      machineClass: classOf((c) => (c.nodeTemplate.capacity = { cpu: '1', memory: 'much' })),
      says: 'no Node of MachineClass class-1 has been observed yet',
    },
  ])('is not known with $what, and what helps is told', ({ machineClass: of, says }) => {
    expect(template({ machineClass: of })).toEqual({ reason: expect.stringContaining(says) });
  });

  test('is marshalled as v1.Node, byte by byte', () => {
    const bytes = nodeBytes({
      name: 'n',
      labels: { b: '2', a: '1' },
      annotations: { x: 'y' },
      taints: [{ key: 'k', effect: 'E' }],
      capacity: { cpu: '1' },
      allocatable: { cpu: '2' },
      os: 'o',
      architecture: 'r',
    });

    const text = (t: string): string => Buffer.from(t).toString('hex');
    const condition = (type: string, status: string, reason: string): string => {
      const inner = [
        ['0a', type],
        ['12', status],
        ['2a', reason],
      ]
        .map(([tag, value = '']) => `${tag}${value.length.toString(16).padStart(2, '0')}${text(value)}`)
        .join('');
      return `22${(inner.length / 2).toString(16).padStart(2, '0')}${inner}`;
    };
    const status = [
      '0a0a',
      '0a03',
      text('cpu'),
      '1203',
      '0a01',
      text('1'), // 1: capacity
      '120a',
      '0a03',
      text('cpu'),
      '1203',
      '0a01',
      text('2'), // 2: allocatable
      condition('Ready', 'True', 'KubeletReady'), // 4: conditions
      condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory'),
      condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure'),
      condition('PIDPressure', 'False', 'KubeletHasSufficientPID'),
      condition('NetworkUnavailable', 'False', 'RouteCreated'),
      '3a06',
      '4a01',
      text('o'),
      '5201',
      text('r'), // 7: nodeInfo, of it 9 and 10
    ].join('');
    expect(Buffer.from(bytes).toString('hex')).toBe(
      [
        '0a1b',
        '0a01',
        text('n'), // 1: metadata, of it 1: name
        '5a06',
        '0a01',
        text('a'),
        '1201',
        text('1'), // 11: labels
        '5a06',
        '0a01',
        text('b'),
        '1201',
        text('2'),
        '6206',
        '0a01',
        text('x'),
        '1201',
        text('y'), // 12: annotations
        '120a',
        '2a08',
        '0a01',
        text('k'),
        '1200',
        '1a01',
        text('E'), // 2: spec, of it 5: taints
        '1a',
        `${(((status.length / 2) & 0x7f) | 0x80).toString(16)}0${(status.length / 2) >> 7}`,
        status, // 3: status
      ].join(''),
    );
  });
});

describe('what was learned of a class', () => {
  const DEVICES = { 'nvidia.com/gpu': '1', 'example.com/fuse': '10' };
  const ready = (resources: Record<string, string>, instanceType?: string) =>
    withDevices(resources, DEVICES, instanceType);
  const withDevices = (resources: Record<string, string>, devices: Record<string, string>, instanceType?: string) =>
    node((n) => {
      n.metadata.labels = { tier: 'db', ...(instanceType && { 'node.kubernetes.io/instance-type': instanceType }) };
      n.status = {
        conditions: [{ type: 'Ready', status: 'True' }],
        capacity: { cpu: '4', memory: '16Gi' },
        allocatable: { ...resources, ...devices },
      };
    });
  const created = (creationTimestamp: string) => machine((m) => (m.metadata.creationTimestamp = creationTimestamp));
  const before = created('2025-12-31T23:00:00Z');
  const [early, late] = [created('2026-01-01T00:00:00Z'), created('2026-01-01T01:00:00Z')];

  test('is of the newest ready Node, without its own labels', () => {
    const shapes = new LearnedShapes();

    shapes.see(late, ready({ cpu: '3', memory: '15Gi' }, 'm4'), classOf());
    shapes.see(early, ready({ cpu: '2', memory: '14Gi' }, 'm4'), classOf());

    expect(shapes.of(classOf())).toEqual({
      capacity: { cpu: '4', memory: '16Gi' },
      allocatable: { cpu: '3', memory: '15Gi', ...DEVICES },
      labels: { 'node.kubernetes.io/instance-type': 'm4' },
    });
  });

  test.each([
    ['topology.kubernetes.io/zone', true],
    ['topology.cinder.csi.openstack.org/zone', true],
    ['topology.ebs.csi.aws.com/zone', true],
    ['topology.disk.csi.azure.com/zone', true],
    ['topology.gke.io/zone', true],
    ['topology.example.com/region', true],
    ['topology.example.com/node', false],
    ['topology.example.com/zone.x', false],
    ['my-topology.example.com/zone', false],
    ['zone', false],
  ])('has label %s: %s', (key, isLearned) => {
    const shapes = new LearnedShapes();
    const labelled = ready({ cpu: '3', memory: '15Gi' });
    labelled.metadata.labels = { [key]: 'z-1' };

    shapes.see(early, labelled, classOf());

    expect(shapes.of(classOf())?.labels).toEqual(isLearned ? { [key]: 'z-1' } : {});
  });

  test('does not outlive a change of the class; Machines from before say nothing any more', () => {
    const shapes = new LearnedShapes();
    const changed = classOf((c) => (c.metadata.generation = 2));
    shapes.see(early, ready({ cpu: '2', memory: '14Gi' }), classOf());

    shapes.changed(classOf(), changed, Date.parse('2026-01-01T00:30:00Z'));
    shapes.see(early, ready({ cpu: '2', memory: '14Gi' }), changed);

    expect(shapes.of(changed)).toBeUndefined();
    shapes.see(late, ready({ cpu: '3', memory: '15Gi' }), changed);
    expect(shapes.of(changed)).toMatchObject({ allocatable: { cpu: '3' } });
  });

  test.each([
    { what: 'its only version', generation: 1, of: early, isLearned: true },
    { what: 'its only version, of a class that had the name before', generation: 1, of: before, isLearned: false },
    { what: 'a later version, which this process found there', generation: 2, of: early, isLearned: false },
    { what: 'a later version, after this process found it there', generation: 2, of: late, isLearned: true },
  ])('of a class with $what: $isLearned', ({ generation, of, isLearned }) => {
    const shapes = new LearnedShapes();
    const found = classOf((c) => {
      c.metadata.creationTimestamp = '2026-01-01T00:00:00Z';
      c.metadata.generation = generation;
    });
    shapes.changed(undefined, found, Date.parse('2026-01-01T00:30:00Z'));

    shapes.see(of, ready({ cpu: '2', memory: '14Gi' }), found);

    expect([shapes.of(found) !== undefined, shapes.toStore(found) !== undefined]).toEqual([isLearned, isLearned]);
  });

  test('outlives a change of the metadata of the class', () => {
    const shapes = new LearnedShapes();
    shapes.see(early, ready({ cpu: '2', memory: '14Gi' }), classOf());

    shapes.changed(
      classOf(),
      classOf((c) => (c.metadata.labels = { a: 'b' })),
      Date.parse('2026-01-01T00:30:00Z'),
    );

    expect(shapes.of(classOf())).toBeDefined();
  });

  test('is stored once for each version of the class, and read by the next process', () => {
    const shapes = new LearnedShapes();
    expect(shapes.toStore(classOf())).toBeUndefined();
    shapes.see(early, ready({ cpu: '2', memory: '14Gi' }), classOf());
    const stored = (generation = 1, text = shapes.toStore(classOf()) ?? '') =>
      classOf((c) => {
        c.metadata.generation = generation;
        c.metadata.annotations = { 'machine.sapcloud.io/learned-node': text };
      });

    expect(shapes.toStore(stored())).toBeUndefined();
    expect(new LearnedShapes().of(stored())).toEqual(shapes.of(classOf()));
    expect(new LearnedShapes().of(stored(2))).toBeUndefined();
    const revision = `"revision":"${classOf().metadata.uid}/1"`;
    const other = [`{${revision}}`, `{${revision},"created":1}`, `{${revision},"created":"","capacity":{"cpu":1}}`];
    for (const text of ['{', 'null', '[]', ...other]) {
      expect(new LearnedShapes().of(stored(1, text))).toBeUndefined();
    }
  });

  test('is stored again when a Node has got a label that what is stored lacks, and not when one is gone', () => {
    const shapes = new LearnedShapes();
    const seen = ready({ cpu: '2', memory: '14Gi' });
    const storing = () =>
      classOf(
        (c) => void (c.metadata.annotations = { 'machine.sapcloud.io/learned-node': shapes.toStore(classOf()) ?? '' }),
      );
    shapes.see(early, seen, classOf());
    const unlabelled = storing();

    const labelled = structuredClone(seen);
    labelled.metadata.labels = { ...seen.metadata.labels, 'topology.ebs.csi.aws.com/zone': 'z-1' };
    shapes.see(early, labelled, unlabelled);

    expect(shapes.toStore(unlabelled)).toContain('"topology.ebs.csi.aws.com/zone":"z-1"');
    const after = storing();
    expect(shapes.toStore(after)).toBeUndefined();
    expect(new LearnedShapes().of(after)?.labels).toEqual({ 'topology.ebs.csi.aws.com/zone': 'z-1' });
    shapes.see(early, seen, after);
    expect(shapes.toStore(after)).toBeUndefined();
  });

  describe('keeps a label that is missing on the newest Node, whose CSI driver may not have labelled it yet,', () => {
    const EBS = 'topology.ebs.csi.aws.com/zone';
    const ZONE = 'topology.kubernetes.io/zone';
    const CINDER = 'topology.cinder.csi.openstack.org/zone';
    const labelled = (labels: Record<string, string>) => {
      const seen = ready({ cpu: '2', memory: '14Gi' });
      seen.metadata.labels = labels;
      return seen;
    };
    const storing = (shapes: LearnedShapes) =>
      classOf(
        (c) => void (c.metadata.annotations = { 'machine.sapcloud.io/learned-node': shapes.toStore(classOf()) ?? '' }),
      );
    const twin = machine((m) => {
      m.metadata.name = 'm-2';
      m.metadata.creationTimestamp = early.metadata.creationTimestamp;
    });

    test.each([
      { what: 'and another Node has', first: late, second: early },
      { what: 'and an older one had', first: early, second: late },
      { what: 'and one of the same second has', first: twin, second: early, ofTwin: { [EBS]: 'z-1' } },
    ])('$what', ({ first, second, ofTwin }) => {
      const shapes = new LearnedShapes();
      const [ofEarly, ofOther] = ofTwin === undefined ? [{ [EBS]: 'z-1' }, {}] : [{}, ofTwin];
      for (const one of [first, second])
        shapes.see(one, labelled({ [ZONE]: 'z-1', ...(one === early ? ofEarly : ofOther) }), classOf());

      expect(shapes.of(classOf())?.labels).toEqual({ [ZONE]: 'z-1', [EBS]: 'z-1' });
    });

    test('and the process before has stored', () => {
      const former = new LearnedShapes();
      former.see(early, labelled({ [ZONE]: 'z-1', [EBS]: 'z-1' }), classOf());
      const stored = storing(former);
      const shapes = new LearnedShapes();

      shapes.see(late, labelled({ [ZONE]: 'z-1' }), stored);

      expect(shapes.of(stored)?.labels).toEqual({ [ZONE]: 'z-1', [EBS]: 'z-1' });
    });

    test('but not of another zone, nor of another version of the class', () => {
      const shapes = new LearnedShapes();
      shapes.see(early, labelled({ [ZONE]: 'z-1', [EBS]: 'z-1' }), classOf());
      const stored = storing(shapes);
      const changed = classOf((c) => {
        c.metadata.generation = 2;
        c.metadata.annotations = stored.metadata.annotations ?? {};
      });

      shapes.see(late, labelled({ [ZONE]: 'z-2' }), stored);
      expect(shapes.of(stored)?.labels).toEqual({ [ZONE]: 'z-2' });

      shapes.changed(stored, changed, Date.parse('2026-01-01T00:30:00Z'));
      shapes.see(late, labelled({}), changed);
      expect(shapes.of(changed)?.labels).toEqual({});
    });

    test('so that Nodes of the same second, each with a label of its own, are stored together, once', () => {
      const shapes = new LearnedShapes();
      const nodes = [labelled({ [EBS]: 'z-1' }), labelled({ [CINDER]: 'z-1' })] as const;
      for (const [of, seen] of [[early, nodes[0]] as const, [twin, nodes[1]] as const]) shapes.see(of, seen, classOf());
      const stored = storing(shapes);
      const told = shapes.of(stored);

      for (const [of, seen] of [[early, nodes[0]] as const, [twin, nodes[1]] as const]) {
        shapes.see(of, seen, stored);
        expect([shapes.of(stored), shapes.toStore(stored)]).toEqual([told, undefined]);
      }
      expect(told?.labels).toEqual({ [EBS]: 'z-1', [CINDER]: 'z-1' });
    });
  });

  test('is of one Node all the time where several were created in the same second', () => {
    const shapes = new LearnedShapes();
    const twin = machine((m) => {
      m.metadata.name = 'm-2';
      m.metadata.creationTimestamp = early.metadata.creationTimestamp;
    });
    const seen: unknown[] = [];
    for (const [of, cpu] of [[early, '2'] as const, [twin, '3'] as const, [early, '2'] as const]) {
      shapes.see(of, ready({ cpu, memory: '14Gi' }), classOf());
      seen.push(shapes.of(classOf())?.allocatable['cpu']);
    }

    expect(seen).toEqual(['2', '2', '2']);
    shapes.see(early, ready({ cpu: '1', memory: '14Gi' }), classOf());
    expect(shapes.of(classOf())).toMatchObject({ allocatable: { cpu: '1' } });
  });

  test('and stored counts more, after a restart, than Machines from before', () => {
    const shapes = new LearnedShapes();
    shapes.see(late, ready({ cpu: '2', memory: '14Gi' }), classOf());
    const text = shapes.toStore(classOf()) ?? '';
    const stored = classOf((c) => void (c.metadata.annotations = { 'machine.sapcloud.io/learned-node': text }));
    const restarted = new LearnedShapes();

    restarted.see(early, ready({ cpu: '16', memory: '64Gi' }), stored);
    expect(restarted.of(stored)).toMatchObject({ allocatable: { cpu: '2' } });
    restarted.see(late, ready({ cpu: '3', memory: '14Gi' }), stored);
    expect(restarted.of(stored)).toMatchObject({ allocatable: { cpu: '3' } });
  });

  test.each([
    { of: 'other GPUs', capacity: { gpu: 1 }, devices: { 'amd.com/gpu': '2' } },
    { of: 'no GPU, as the class says', capacity: { gpu: '0' }, devices: {} },
  ])('comes from a Node with $of', ({ capacity, devices }) => {
    const shapes = new LearnedShapes();
    const found = classOf((c) => {
      c.nodeTemplate.capacity = { cpu: 1, memory: '1Gi', ...capacity };
      delete c.nodeTemplate.virtualCapacity;
    });

    shapes.see(early, withDevices({ cpu: '1', memory: '1Gi' }, devices), found);

    expect(shapes.of(found)).toMatchObject({ allocatable: devices });
  });

  test.each([
    { what: 'is not ready', node: node((n) => (n.status.conditions = [{ type: 'Ready', status: 'Unknown' }])) },
    { what: 'does not say what it can allocate', node: ready({ cpu: '1' }) },
    { what: 'is of another instance type', node: ready({ cpu: '1', memory: '1Gi' }, 'm8') },
    { what: 'has no GPU yet', node: withDevices({ cpu: '1', memory: '1Gi' }, { 'nvidia.com/gpu': '0' }) },
    { what: 'lacks a device', node: withDevices({ cpu: '1', memory: '1Gi' }, { 'nvidia.com/gpu': '1' }) },
  ])('does not come from a Node that $what', ({ node: of }) => {
    const shapes = new LearnedShapes();

    shapes.see(early, of, classOf());

    expect(shapes.of(classOf())).toBeUndefined();
  });
});
