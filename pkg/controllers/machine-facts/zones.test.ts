import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';

import { MINUTE } from '../../../test/durations.ts';
import { FORCE_DRAIN_LABEL, MAINTENANCE_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { MachineClass } from '../../apis/machine/v1alpha1/machine-class.ts';
import type { MachinePhase } from '../../apis/machine/v1alpha1/phases.ts';
import { keyOf } from '../../apis/meta.ts';
import { toTimestamp } from '../../base/clock/clock.ts';
import { Store } from '../../kube/cache/store.ts';
import type { Target } from '../../kube/targets/targets.ts';
import { machine, machineClass } from '../../../test/builders.ts';
import { Zones } from './zones.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const ZONE = 'topology.kubernetes.io/zone';

function inPhase(phase: MachinePhase, sinceMs = NOW, zone = 'a'): Machine {
  return machine((m) => {
    m.spec.nodeTemplate = { metadata: { labels: { [ZONE]: zone } } };
    m.status.currentStatus = { phase, lastUpdateTime: toTimestamp(sinceMs) };
  });
}

function many(phase: MachinePhase, count: number, sinceMs = NOW): Machine[] {
  return Array.from({ length: count }, () => inPhase(phase, sinceMs));
}

/** Of one target cluster and one class, unless told otherwise. */
function zonesOf(
  machines: readonly Machine[],
  { classes = [machineClass()], clusterOf = () => 'target', threshold = 0.5 }: Scene = {},
): Zones {
  return new Zones({
    machines: { list: () => machines },
    classes: { get: (key) => classes.find((one) => keyOf(one) === key), list: () => classes },
    targets: {
      of: (one) => {
        const cluster = clusterOf(one);
        return cluster === undefined ? undefined : ({ cluster } as Target);
      },
    },
    settings: { zoneUnhealthyThreshold: threshold, nodeConditions: [] },
  });
}

interface Scene {
  readonly classes?: readonly MachineClass[];
  readonly clusterOf?: (machine: Machine) => string | undefined;
  readonly threshold?: number;
}

function isStopped(machines: readonly Machine[], threshold = 0.5): boolean {
  return zonesOf(machines, { threshold }).states()[0]?.isStopped ?? false;
}

const deleted = (one: Machine): Machine => ({
  ...one,
  metadata: { ...one.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
});

const inMaintenance = (one: Machine): Machine => ({
  ...one,
  metadata: { ...one.metadata, annotations: { [MAINTENANCE_ANNOTATION]: 'true' } },
});

/** In an update in place that label `force-drain` let begin, an hour after the others became Unknown. */
const repaired = (phase: MachinePhase, ready = 'Unknown'): Machine => {
  const one = inPhase(phase, NOW + 60 * MINUTE);
  const { metadata, status } = one;
  return {
    ...one,
    metadata: { ...metadata, labels: { ...metadata.labels, [FORCE_DRAIN_LABEL]: 'True' } },
    status: { ...status, conditions: [{ type: 'Ready', status: ready }] },
  };
};

describe('a zone', () => {
  test.each([
    { what: 'with all machines well', machines: many('Running', 10), stopped: false },
    {
      what: 'with 6 of 10 unhealthy at once',
      machines: [...many('Running', 4), ...many('Unknown', 6)],
      stopped: true,
    },
    {
      what: 'with 5 of 10, which is the very share',
      machines: [...many('Running', 5), ...many('Unknown', 5)],
      stopped: true,
    },
    { what: 'with 4 of 10', machines: [...many('Running', 6), ...many('Unknown', 4)], stopped: false },
    { what: 'with 2 of 2: too few to tell', machines: many('Unknown', 2), stopped: false },
    { what: 'with 3 of 3', machines: many('Unknown', 3), stopped: true },
    {
      what: 'with 3 of 3, of which one is being deleted',
      machines: [...many('Unknown', 2), ...many('Unknown', 1).map(deleted)],
      stopped: true,
    },
    {
      what: 'with 3 of 3, of which one is in maintenance',
      machines: [...many('Unknown', 2), ...many('Unknown', 1).map(inMaintenance)],
      stopped: true,
    },
    {
      what: 'with 3 of 3, of which one was deleted, and is made anew',
      machines: [...many('Unknown', 2), ...many('Pending', 1)],
      stopped: true,
    },
    {
      what: 'with one of one besides others that are being deleted: a single one tells nothing',
      machines: [...many('Unknown', 1), ...many('Unknown', 2).map(deleted)],
      stopped: false,
    },
    {
      what: 'with one of one besides others in maintenance',
      machines: [...many('Unknown', 1), ...many('Running', 2).map(inMaintenance)],
      stopped: false,
    },
    {
      what: 'with 2 that fell ill apart, and one being deleted',
      machines: [...[0, 20].map((m) => inPhase('Unknown', NOW + m * MINUTE)), ...many('Unknown', 1).map(deleted)],
      stopped: false,
    },
    {
      what: 'with 6 of 10, one after the other in an hour',
      machines: [...many('Running', 4), ...[0, 10, 20, 30, 40, 50].map((m) => inPhase('Unknown', NOW + m * MINUTE))],
      stopped: false,
    },
    {
      what: 'with 6 of 10, half of them within 5 minutes',
      machines: [...many('Running', 4), ...[0, 20, 40, 60, 62, 65].map((m) => inPhase('Unknown', NOW + m * MINUTE))],
      stopped: true,
    },
    {
      what: 'whose machines have not joined yet: they cannot tell',
      machines: [...many('Pending', 20), ...many('CrashLoopBackOff', 5), ...many('Unknown', 3)],
      stopped: true,
    },
    {
      what: 'whose unhealthy machines are being deleted',
      machines: [
        ...many('Running', 3),
        ...many('Unknown', 9).map((one) => ({
          ...one,
          metadata: { ...one.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
        })),
      ],
      stopped: false,
    },
    {
      what: 'with 3 of 3, of which one is being updated so that it is repaired, and one was in vain',
      machines: [...many('Unknown', 1), repaired('InPlaceUpdating'), repaired('InPlaceUpdateFailed')],
      stopped: true,
    },
    {
      what: 'with 3 of 3, of which two were updated, and one of those is not healthy yet',
      machines: [...many('Unknown', 1), repaired('InPlaceUpdateSuccessful'), repaired('Running', 'True')],
      stopped: true,
    },
    {
      what: 'with 3 of 3, of which two were updated, and are healthy',
      machines: [...many('Unknown', 1), repaired('InPlaceUpdating', 'True'), repaired('Running', 'True')],
      stopped: false,
    },
    {
      what: 'with 3 of 3, of which two are being repaired, but in maintenance or deleted',
      machines: [
        ...many('Unknown', 1),
        inMaintenance(repaired('InPlaceUpdating')),
        deleted(repaired('InPlaceUpdating')),
      ],
      stopped: false,
    },
  ])('$what', ({ machines, stopped }) => {
    expect(isStopped(machines)).toBe(stopped);
  });

  test('is never stopped with threshold 1', () => {
    expect(isStopped(many('Unknown', 100), 1)).toBe(false);
  });

  test('with threshold 0 is stopped by the first unhealthy machine, not without one', () => {
    expect(
      [many('Running', 3), [...many('Running', 9), ...many('Unknown', 1)]].map((one) => isStopped(one, 0)),
    ).toEqual([false, true]);
  });

  test('tells how many of its machines became unhealthy together', () => {
    const machines = [
      inPhase('Unknown', NOW),
      inPhase('Unknown', NOW + 5 * MINUTE),
      inPhase('Unknown', NOW - 5 * MINUTE),
      inPhase('Unknown', NOW + 6 * MINUTE),
      inPhase('Unknown', NOW, 'b'),
      inPhase('Running', NOW),
      machine((m) => Object.assign(m.metadata, { deletionTimestamp: '2026-01-01T00:00:00Z' })),
    ].map((one, i) => ({ ...one, metadata: { ...one.metadata, uid: String(i) } }));

    const zones = zonesOf(machines);

    expect(machines.slice(0, 5).map((one) => zones.unhealthyTogether(one).together)).toEqual([3, 3, 2, 2, 1]);

    const [, , , late, elsewhere, running] = machines;
    if (late === undefined) throw new Error('it is there');
    const isLost = (one: Machine): boolean => one === late || one === elsewhere || one === running;
    expect(zones.unhealthyTogether(late, isLost).together).toBe(3);
    const withRepaired = zonesOf([...machines, repaired('InPlaceUpdating')]);
    expect(withRepaired.unhealthyTogether(late).together).toBe(3);
  });

  test('is that of the class which the VM was requested with, whatever class the machine names by now', () => {
    const classes = classesOf('another');
    const changed = machine((m) => {
      m.spec.class = { kind: 'MachineClass', name: OTHER };
      m.metadata.annotations['machine.sapcloud.io/vm-class'] = 'class-1';
    });

    expect(zonesOf([changed], { classes }).states()).toMatchObject([{ zone: { provider: 'sim' } }]);
  });

  test('is not judged by machines in maintenance, which may be down on purpose', () => {
    const maintained = many('Unknown', 6).map((one, i) => {
      const annotations = { 'machine.sapcloud.io/maintenance': 'true' };
      return { ...one, metadata: { ...one.metadata, uid: `maintained-${i}`, annotations } };
    });
    const [well = inPhase('Running')] = many('Running', 4);

    expect(isStopped([...many('Running', 4), ...maintained])).toBe(false);
    expect(zonesOf(maintained).unhealthyTogether(well).together).toBe(1);
  });

  test('is judged by its own machines only', () => {
    const machines = [...many('Unknown', 3), ...many('Running', 1).concat(inPhase('Running', NOW, 'b'))];

    expect(zonesOf(machines).states()).toMatchObject([
      { zone: { name: 'a' }, machines: 4, unknown: 3, isStopped: true },
      { zone: { name: 'b' }, machines: 1, unknown: 0, isStopped: false },
    ]);
  });

  const OTHER = 'class-2';
  const isOther = ({ spec }: Machine): boolean => spec.class?.name === OTHER;
  /** Machines of two classes; nobody knows their zone unless a label tells. */
  const classesOf = (provider: string): MachineClass[] =>
    ['class-1', OTHER].map((name) => {
      const { nodeTemplate: _zone, ...one } = machineClass((c) => (c.metadata.name = name));
      return name === OTHER ? { ...one, provider } : one;
    });
  const inZone = (one: Machine, zone: string, className = 'class-1'): Machine => ({
    ...one,
    spec: {
      class: { kind: 'MachineClass', name: className },
      ...(zone === '' ? {} : { nodeTemplate: { metadata: { labels: { [ZONE]: zone } } } }),
    },
  });

  test.each<{ what: string; scene: Scene; zone: string; isOne: boolean }>([
    { what: 'of one provider', scene: { classes: classesOf('sim') }, zone: 'a', isOne: true },
    { what: 'of two providers', scene: { classes: classesOf('another') }, zone: 'a', isOne: false },
    {
      what: 'of two target clusters',
      scene: { classes: classesOf('sim'), clusterOf: (one) => (isOther(one) ? 'b' : 'a') },
      zone: 'a',
      isOne: false,
    },
    {
      what: 'without a target cluster',
      scene: { classes: classesOf('sim'), clusterOf: () => undefined },
      zone: 'a',
      isOne: true,
    },
    { what: 'of one provider that nobody knows', scene: { classes: classesOf('sim') }, zone: '', isOne: true },
    { what: 'of two providers that nobody knows', scene: { classes: classesOf('another') }, zone: '', isOne: false },
  ])('$what is one: $isOne', ({ scene, zone, isOne }) => {
    const ill = many('Unknown', 3).map((one) => inZone(one, zone));
    const well = many('Running', 4).map((one) => inZone(one, zone, OTHER));
    const illThere = inZone(inPhase('Unknown'), zone, OTHER);

    expect(
      zonesOf([...ill, ...well], scene)
        .states()
        .map((state) => state.isStopped),
    ).toEqual(isOne ? [false] : [true, false]);
    const another = { ...illThere, metadata: { ...illThere.metadata, uid: 'another' } };
    const one = inZone(inPhase('Unknown'), zone);
    expect(zonesOf([another], scene).unhealthyTogether(one).together).toBe(isOne ? 2 : 1);
  });

  test.each([
    { what: 'the label of the node template', label: 'b', want: 'b' },
    { what: 'the class without it', label: undefined, want: 'zone-of-class' },
  ])('is read from $what', ({ label, want }) => {
    const one = machine((m) => {
      if (label !== undefined) m.spec.nodeTemplate = { metadata: { labels: { [ZONE]: label } } };
    });
    const classes = [machineClass((c) => Object.assign(c.nodeTemplate, { zone: 'zone-of-class' }))];

    const zone = { cluster: 'target', provider: 'sim', name: want };
    expect(zonesOf([one], { classes }).states()).toMatchObject([{ zone }]);
  });

  test('is never stopped for machines that fell ill apart, if it is not for the same ones that fell ill together', () => {
    const minutes = fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(minutes, fc.nat({ max: 6 }), (sinceMinutes, well) => {
        const apart = sinceMinutes.map((minute) => inPhase('Unknown', NOW + minute * MINUTE));
        const together = many('Unknown', apart.length);
        const others = many('Running', well);

        expect(isStopped([...others, ...apart]) && !isStopped([...others, ...together])).toBe(false);
      }),
    );
  });

  test('is counted anew when a machine or a class has changed, and only those machines are looked at that may tell otherwise', () => {
    const machines = new Store<Machine>();
    const classes = new Store<MachineClass>();
    const put = (name: string, phase: MachinePhase, version: string): void => {
      const { metadata, ...rest } = inZone(inPhase(phase), '');
      machines.put({ ...rest, metadata: { ...metadata, name, uid: name, resourceVersion: version } });
    };
    let looks = 0;
    const of = (): undefined => void looks++;
    const zones = new Zones({
      machines,
      classes,
      targets: { of },
      settings: { zoneUnhealthyThreshold: 0.5, nodeConditions: [] },
    });
    for (const name of ['a', 'b', 'c', 'd']) put(name, 'Running', '1');
    const judge = (): unknown[] => {
      looks = 0;
      const [state] = zones.states();
      for (const one of machines.list()) zones.unhealthyTogether(one);
      return [state?.zone.name, state?.unknown, looks];
    };

    expect([judge(), judge()]).toEqual([
      ['', 0, 4],
      ['', 0, 0],
    ]);
    expect(zones.states()[0]).toBe(zones.states()[0]);
    put('a', 'Unknown', '2');
    expect(judge()).toEqual(['', 1, 1]);
    classes.put(machineClass((c) => Object.assign(c.nodeTemplate, { zone: 'of-class' })));
    expect([judge(), judge()]).toEqual([
      ['of-class', 1, 4],
      ['of-class', 1, 0],
    ]);
    machines.remove('default/a');
    expect(judge()).toEqual(['of-class', 0, 0]);
  });
});
