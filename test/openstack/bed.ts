import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, closeSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { cleanUpDeadRuns, type LedgerRun, openRun } from '../../hack/control-plane/ledger.ts';
import { openStackPackages, PYTHON } from '../../hack/openstack/packages.ts';
import { freePorts } from '../../pkg/drivers/local/ports.ts';
import { eventually } from '../expect/eventually.ts';
import { Api } from './api.ts';
import { type BedSettings, configurationOf, type Service, type ServicePort, SERVICES } from './configuration.ts';
import { PROJECTS, seedCloud, seedIdentity, type Seeds, USER } from './seed.ts';

const START_MS = 240_000;
const FOLDERS = ['etc', 'db', 'log', 'keys', 'neutron', 'nova', 'images/store', 'images/staging', 'images/tasks'];

/** What may differ between beds. */
export interface BedOptions {
  /** How long a token lives; an hour by default. */
  readonly tokenSeconds?: number;
}

/**
 * A real OpenStack of this process: Keystone, Glance, Neutron, Placement and Nova, whose compute hosts have hypervisors that boot
 * nothing. It takes 10 s and 0.7 GB, and leaves nothing behind. Zones: `large`, `small` (10 vCPUs), `slow`, `broken`.
 */
export class Bed implements AsyncDisposable {
  readonly settings: BedSettings;
  readonly seeds: Seeds;
  readonly admin: Api;
  /** The user of the driver, in its project without limits. */
  readonly user: Api;
  /** Ports of loopback that the second region's compute and network services are said to be at. */
  readonly lossyPorts: Readonly<Record<'nova' | 'neutron', number>>;
  readonly #place: Place;

  private constructor(place: Place, seeds: Seeds, lossyPorts: Bed['lossyPorts'], admin: Api, user: Api) {
    this.#place = place;
    this.settings = place.settings;
    this.seeds = seeds;
    this.lossyPorts = lossyPorts;
    this.admin = admin;
    this.user = user;
  }

  /** Resolves when everything answers and the seeds are there. */
  static async start(options: BedOptions = {}): Promise<Bed> {
    const place = await Place.make(options);
    try {
      return await Bed.#startIn(place);
    } catch (err) {
      await place.end();
      throw err;
    }
  }

  static async #startIn(place: Place): Promise<Bed> {
    const { settings } = place;
    const userPassword = randomBytes(12).toString('hex');
    const [nova = 0, neutron = 0] = await freePorts(2, new Set(Object.values(settings.ports)));
    const lossyPorts = { nova, neutron };
    for (const name of SERVICES) place.start(name);
    await place.ready('keystone');
    const projects = await seedIdentity(settings, userPassword, lossyPorts);
    writeFileSync(join(place.folder, 'identity.done'), '');
    for (const name of SERVICES) await place.ready(name);
    const seeds = await seedCloud(settings, { ...projects, userPassword });
    const admin = await Api.open(settings, { user: 'admin', password: settings.adminPassword, project: 'admin' });
    const user = await Api.open(settings, { user: USER, password: userPassword, project: PROJECTS.machines });
    return new Bed(place, seeds, lossyPorts, admin, user);
  }

  /** Kills a service. */
  async kill(name: Service): Promise<void> {
    await this.#place.kill(name);
  }

  /** Starts a killed service again, with what it kept; resolves when it answers. */
  async revive(name: Service): Promise<void> {
    this.#place.start(name);
    await this.#place.ready(name);
  }

  /** A compute host dies, or comes back. */
  async switchHost(host: string, verb: 'stop' | 'start'): Promise<void> {
    await this.admin.call('hosts', 'POST', `/${host}/${verb}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#place.end();
  }
}

/** The folder of a bed, and the processes in it. */
class Place {
  readonly folder: string;
  readonly settings: BedSettings;
  readonly #run: LedgerRun;
  readonly #packages: string;
  readonly #children = new Map<Service, ChildProcess>();

  private constructor(folder: string, settings: BedSettings, packages: string) {
    this.folder = folder;
    this.settings = settings;
    this.#packages = packages;
    this.#run = openRun(folder);
  }

  static async make({ tokenSeconds = 3_600 }: BedOptions): Promise<Place> {
    const packages = await openStackPackages(() => undefined);
    await cleanUpDeadRuns();
    const names: readonly ServicePort[] = [...SERVICES, 'placement', 'hosts'];
    const free = await freePorts(names.length, new Set());
    const ports = Object.fromEntries(names.map((name, i) => [name, free[i] ?? 0])) as BedSettings['ports'];
    const settings: BedSettings = {
      ports,
      authURL: `http://127.0.0.1:${ports.keystone}/v3`,
      region: 'region-1',
      adminPassword: randomBytes(12).toString('hex'),
      servicePassword: randomBytes(12).toString('hex'),
      tokenSeconds,
      hosts: { large: 'Large', small: 'Small', slow: 'Slow', broken: 'Broken' },
      packages: join(packages, 'root/usr/lib/python3/dist-packages'),
    };
    const folder = await mkdtemp(join(tmpdir(), 'openstack-'));
    for (const one of FOLDERS) mkdirSync(join(folder, one), { recursive: true });
    writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings), { mode: 0o600 });
    for (const [name, text] of Object.entries(configurationOf(settings, folder)))
      writeFileSync(join(folder, 'etc', name), text, { mode: 0o600 });
    return new Place(folder, settings, packages);
  }

  start(name: Service): void {
    rmSync(this.#ready(name), { force: true });
    const output = openSync(this.#output(name), 'a');
    const libraries = [
      'usr/lib/x86_64-linux-gnu',
      'lib/x86_64-linux-gnu',
      'usr/lib/aarch64-linux-gnu',
      'lib/aarch64-linux-gnu',
    ];
    // Without site packages of this machine (-S) and without its environment (-I).
    const args = ['-I', '-S', '-W', 'ignore', join(import.meta.dirname, 'cloud/service.py'), name, this.folder];
    const child = spawn(PYTHON, args, {
      cwd: this.folder,
      stdio: ['ignore', output, output],
      env: {
        PATH: '/usr/bin:/bin',
        HOME: this.folder,
        LC_ALL: 'C.UTF-8',
        LD_LIBRARY_PATH: libraries.map((path) => join(this.#packages, 'root', path)).join(':'),
      },
    });
    closeSync(output);
    this.#children.set(name, child);
    this.#run.register(name, child.pid ?? 0);
  }

  async ready(name: Service): Promise<void> {
    const child = this.#children.get(name);
    const hasEnded = (): boolean => child === undefined || child.exitCode !== null || child.signalCode !== null;
    await eventually(() => hasEnded() || existsSync(this.#ready(name)), { timeoutMs: START_MS, describe: name });
    if (hasEnded()) throw new Error(`${name} ended:\n${readFileSync(this.#output(name), 'utf8').slice(-3_000)}`);
  }

  async kill(name: Service): Promise<void> {
    const child = this.#children.get(name);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    this.#run.unregister(child.pid ?? 0);
  }

  async end(): Promise<void> {
    for (const name of SERVICES) await this.kill(name);
    await this.#run.end();
  }

  #ready(name: Service): string {
    return join(this.folder, `${name}.ready`);
  }

  #output(name: Service): string {
    return join(this.folder, 'log', `${name}.out`);
  }
}
