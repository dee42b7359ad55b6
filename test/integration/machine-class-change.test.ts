import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';

import type { Connection } from '../../hack/control-plane/connection.ts';
import { VM_CLASS_ANNOTATION } from '../../pkg/apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../pkg/apis/machine/v1alpha1/machine.ts';
import type { Driver, MachineRequest } from '../../pkg/driver/driver.ts';
import { DriverError } from '../../pkg/driver/error.ts';
import { ApiError } from '../../pkg/kube/client/errors.ts';
import { mergePatch } from '../../pkg/kube/client/patch.ts';
import { events, machineClasses, machines } from '../../pkg/kube/client/resource.ts';
import { forCreation, machineClass } from '../builders.ts';
import { apiServer, privateApiServer, type TestServer } from '../env/api-server.ts';
import { eventually } from '../expect/eventually.ts';
import { MachineWorld, type MachineWorldOptions } from './machine-world.ts';

const PATIENCE = { timeoutMs: 120_000 };

let plane: TestServer;
beforeAll(async () => {
  plane = await privateApiServer({ crds: 'original' });
});
afterAll(() => plane[Symbol.asyncDispose]());

/** class-2 is of another account of the provider, which has no VM; `created` counts those that were asked for there. */
interface TwoAccounts extends AsyncDisposable {
  readonly world: MachineWorld;
  readonly created: () => number;
  /** The next CreateMachine call with class-1 waits until `go` is called; resolves when it is sent. */
  readonly holdNextCreation: () => { readonly sent: Promise<void>; readonly go: () => void };
}

async function twoAccounts(connection: Connection, options: MachineWorldOptions = {}): Promise<TwoAccounts> {
  let made = 0;
  let held: { readonly tellSent: () => void; readonly go: Promise<void> } | undefined;
  let release: () => void = () => undefined;
  const elsewhere: Readonly<Record<string, () => Promise<unknown>>> = {
    createMachine: () => {
      made += 1;
      return Promise.reject(new DriverError('ResourceExhausted', 'no room in the other account'));
    },
    getMachineStatus: () => Promise.reject(new DriverError('NotFound', 'not in this account')),
    deleteMachine: () => Promise.reject(new DriverError('NotFound', 'not in this account')),
    listMachines: () => Promise.resolve([]),
  };
  const wrap = (driver: Driver): Driver =>
    new Proxy(driver, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return (request: MachineRequest, ...rest: unknown[]): unknown => {
          const isElsewhere = (request as Partial<MachineRequest>).machineClass?.metadata.name === 'class-2';
          const other = isElsewhere ? elsewhere[String(name)] : undefined;
          if (other !== undefined) return other();
          const answer = (): unknown => member.call(target, request, ...rest) as unknown;
          if (name !== 'createMachine' || held === undefined) return answer();
          const { tellSent, go } = held;
          held = undefined;
          tellSent();
          return go.then(answer);
        };
      },
    });
  const world = await MachineWorld.open({ controllers: 'machine,machine-class', connection, wrap, ...options });
  await world.user.writer.create(
    'create',
    machineClasses,
    forCreation(
      machineClass((c) => {
        c.metadata.namespace = world.namespace;
        c.metadata.name = 'class-2';
        c.metadata.finalizers = [];
        c.secretRef = { name: 'secret-1', namespace: world.namespace };
      }),
    ),
  );
  const holdNextCreation = (): ReturnType<TwoAccounts['holdNextCreation']> => {
    const [sent, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    held = { tellSent: sent.resolve, go: gone.promise };
    release = gone.resolve;
    return { sent: sent.promise, go: release };
  };
  return {
    world,
    created: () => made,
    holdNextCreation,
    async [Symbol.asyncDispose]() {
      release();
      await world[Symbol.asyncDispose]();
    },
  };
}

async function switchClass(world: MachineWorld, name: string, className: string): Promise<Machine> {
  const patch = mergePatch(await world.read(name), { spec: { class: { name: className } } });
  return await world.user.writer.patch('change', machines, { namespace: world.namespace, name }, patch);
}

function vmsOf(world: MachineWorld, name: string): readonly unknown[] {
  return world.cloud.cloud.all().filter(({ machineName }) => machineName === name);
}

describe('under the original definitions, which let the class of a machine change', () => {
  test('a VM keeps its class, which stays, and is deleted with that one by the next process', async () => {
    await using accounts = await twoAccounts(plane.connection);
    const { world } = accounts;
    const name = await world.create();
    await world.settled(name);
    const place = { namespace: world.namespace, name: 'class-1' };
    const { uid } = (await world.user.reader.get(machineClasses, place)).metadata;

    await world.restart(async () => {
      await switchClass(world, name, 'class-2');
      await world.user.writer.delete('destroy', machineClasses, place, { uid });
    });
    await eventually(async () => {
      const { items } = await world.user.reader.list(events, { namespace: world.namespace });
      const told = items.filter(({ reason }) => reason === 'ClassChangeIgnored');
      expect(told.map((one) => (one as { message?: string }).message)).toEqual([
        expect.stringContaining('requested with MachineClass class-1'),
      ]);
    }, PATIENCE);
    const class1 = await world.user.reader.get(machineClasses, place);
    expect(class1.metadata.deletionTimestamp).toBeDefined();
    expect(vmsOf(world, name)).toHaveLength(1);

    await world.delete(name);
    await world.gone(name);

    expect(vmsOf(world, name)).toEqual([]);
    expect(accounts.created()).toBe(0);
    await eventually(() => world.isMissing(() => world.user.reader.get(machineClasses, place)), PATIENCE);
  });

  test('while the answer to CreateMachine is missing no second VM is asked for, also by the next process', async () => {
    await using accounts = await twoAccounts(plane.connection);
    const { world } = accounts;
    world.cloud.faults.set([{ method: 'CreateMachine', effect: 'fail-after', code: 'Unavailable', times: 1 }]);
    const name = await world.create();
    await eventually(async () => {
      expect((await world.read(name)).metadata.annotations).toMatchObject({ [VM_CLASS_ANNOTATION]: 'class-1' });
    }, PATIENCE);

    await world.restart(async () => void (await switchClass(world, name, 'class-2')));
    const running = await world.inPhase(name, 'Running');

    expect(running.metadata.annotations).toMatchObject({ [VM_CLASS_ANNOTATION]: 'class-1' });
    expect(vmsOf(world, name)).toHaveLength(1);
    expect(accounts.created()).toBe(0);
  });

  test('the class of a VM that is being requested stays, also when it is deleted as soon as no Machine names it', async () => {
    await using accounts = await twoAccounts(plane.connection);
    const { world } = accounts;
    const creation = accounts.holdNextCreation();
    const name = await world.create();
    await creation.sent;
    const place = { namespace: world.namespace, name: 'class-1' };
    const { uid } = (await world.user.reader.get(machineClasses, place)).metadata;

    await switchClass(world, name, 'class-2');
    await world.user.writer.delete('destroy', machineClasses, place, { uid });
    await eventually(async () => {
      expect((await world.read(name)).metadata.annotations).toMatchObject({ [VM_CLASS_ANNOTATION]: 'class-1' });
    }, PATIENCE);
    creation.go();
    await world.settled(name);

    expect(vmsOf(world, name)).toHaveLength(1);
    expect(accounts.created()).toBe(0);
    await world.delete(name);
    await world.gone(name);
    expect(vmsOf(world, name)).toEqual([]);
    await eventually(() => world.isMissing(() => world.user.reader.get(machineClasses, place)), PATIENCE);
  });
});

test('our definitions refuse another class once there is a VM, and follow it where nothing was made', async () => {
  await using server = await apiServer();
  await using accounts = await twoAccounts(server.connection);
  const { world } = accounts;
  const name = await world.create();
  await world.settled(name);

  const refused = await switchClass(world, name, 'class-2').catch((err: unknown) => err);
  expect(refused).toBeInstanceOf(ApiError);
  expect(refused).toMatchObject({
    code: 422,
    message: expect.stringContaining('class.name cannot be changed') as unknown,
  });

  const other = await world.create((m) => void (m.spec.class = { kind: 'MachineClass', name: 'class-2' }));
  await world.inPhase(other, 'CrashLoopBackOff');
  await switchClass(world, other, 'class-1');
  await world.settled(other);

  expect((await world.read(other)).metadata.annotations).toMatchObject({ [VM_CLASS_ANNOTATION]: 'class-1' });
});
