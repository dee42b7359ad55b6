import { API_VERSION } from '../pkg/apis/machine/v1alpha1/group.ts';
import { MACHINE_FINALIZER } from '../pkg/apis/machine/v1alpha1/labels.ts';

/** An object as JSON that no type describes. */
export interface OddObject {
  /** Where it differs from a sound one, and in what: unique. */
  readonly what: string;
  readonly kind: 'Machine' | 'MachineSet' | 'MachineDeployment' | 'MachineClass';
  readonly body: Readonly<Record<string, unknown>>;
}

/** What stands in the place of a member; undefined is left out. */
const STRANGE: readonly unknown[] = [undefined, null, {}];
/** The same where no definition says what is allowed: below the metadata of templates. */
const STRANGE_FREE_FORM: readonly unknown[] = [undefined, null, [null], 'text', { a: null, b: 7, c: 'text' }];

const className = 'pool';

function machineSpec(): Record<string, unknown> {
  return {
    class: { apiGroup: 'machine.sapcloud.io', kind: 'MachineClass', name: className },
    nodeTemplate: {
      metadata: { labels: { l: 'v' }, annotations: { a: 'v' } },
      spec: { taints: [{ key: 't', effect: 'PreferNoSchedule', value: 'v' }], unschedulable: false },
    },
    drainTimeout: '1h0m0s',
    maxEvictRetries: 3,
    nodeConditions: 'KernelDeadlock',
  };
}

function ownerSpec(name: string): Record<string, unknown> {
  return {
    replicas: 1,
    selector: { matchLabels: { odd: name }, matchExpressions: [{ key: 'odd', operator: 'In', values: [name] }] },
    template: {
      metadata: { labels: { odd: name }, annotations: { a: 'v' }, finalizers: [MACHINE_FINALIZER] },
      spec: machineSpec(),
    },
  };
}

/** A sound object of each kind, in which whatever may be odd has a value. */
const SOUND: Readonly<Record<OddObject['kind'], (name: string) => Record<string, unknown>>> = {
  Machine: () => ({ spec: machineSpec() }),
  MachineSet: (name) => ({
    spec: { ...ownerSpec(name), machineClass: { kind: 'MachineClass', name: className }, minReadySeconds: 500 },
  }),
  MachineDeployment: (name) => ({
    spec: {
      ...ownerSpec(name),
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: '0%' } },
      rollbackTo: { revision: 0 },
      revisionHistoryLimit: 2,
      progressDeadlineSeconds: 600,
    },
  }),
  MachineClass: () => ({
    provider: 'sim',
    providerSpec: { zone: 'z', tags: ['t'] },
    secretRef: { name: className },
    credentialsSecretRef: { name: className },
    nodeTemplate: {
      capacity: { cpu: '2', gpu: '0', memory: '8Gi' },
      virtualCapacity: { 'example.com/slots': '10' },
      instanceType: 'small',
      region: 'r',
      zone: 'z',
    },
  }),
};

type Path = readonly (string | number)[];

/** Every member below `value`, at any depth. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  const here = path.length === 0 ? [] : [path];
  if (typeof value !== 'object' || value === null) return here;
  const members = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [...here, ...members.flatMap(([key, member]) => pathsOf(member, [...path, key]))];
}

function withMember(value: unknown, [key, ...rest]: Path, member: unknown): unknown {
  if (key === undefined) return member;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }) as Record<
    string | number,
    unknown
  >;
  const changed = withMember(copy[key], rest, member);
  if (changed === undefined && !Array.isArray(copy)) delete copy[key];
  else copy[key] = changed ?? null;
  return copy;
}

/** What is odd in the node template of a MachineDeployment reaches a MachineSet too. */
function isTriedAt(kind: OddObject['kind'], path: Path): boolean {
  return kind !== 'MachineSet' || !path.includes('nodeTemplate');
}

/** Sound objects with one member replaced by something strange, for every member and everything strange. */
export function oddObjects(): readonly OddObject[] {
  return (Object.keys(SOUND) as OddObject['kind'][]).flatMap((kind) =>
    pathsOf(SOUND[kind](''))
      .filter((path) => isTriedAt(kind, path))
      .flatMap((path, i) =>
        (path.includes('metadata') ? STRANGE_FREE_FORM : STRANGE).map((strange, j): OddObject => {
          const name = `${kind.toLowerCase()}-${i}-${j}`;
          const body = withMember(SOUND[kind](name), path, strange) as Record<string, unknown>;
          return {
            what: `${kind}.${path.join('.')} ${strange === undefined ? 'absent' : JSON.stringify(strange)}`,
            kind,
            body: { apiVersion: API_VERSION, kind, ...body, metadata: { name } },
          };
        }),
      ),
  );
}
