import { join } from 'node:path';

import type { Api } from '../../hack/control-plane/api.ts';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from '../../hack/control-plane/control-plane.ts';
import { writeKubeconfig } from '../../hack/control-plane/kubeconfig.ts';
import type { CrdSet } from '../env/crds.ts';
import { privateApiServer, type PrivateOptions, type TestServer } from '../env/api-server.ts';
import { privateControlPlane } from '../env/environment.ts';
import { grant, type RoleFile } from '../integration/shipped-roles.ts';

/** The users that deploy/rbac binds. */
const MANAGER_USER = 'machinist';
const SIM_DRIVER_USER = 'machinist-sim-driver';

/** Roles of a site that is control cluster and target, and of one that is a cell's target. */
const ONE_CLUSTER: readonly RoleFile[] = ['control-identity', 'target', 'sim-driver'];
const TARGET_OF_CELL: readonly RoleFile[] = ['target', 'cells-target', 'sim-driver'];

/** How the control plane is made. */
export interface SiteOptions extends Pick<ControlPlaneOptions, 'extraArguments' | 'controllerManager'> {
  readonly crds?: CrdSet;
  /** False: without definitions and roles, for a test that installs them. */
  readonly installed?: boolean;
}

/** How one is made that may be simulated. */
export type DrawnOptions = Omit<SiteOptions, 'installed'> & Pick<PrivateOptions, 'endsNamespaces'>;

/** A control plane of its own for pools of machines: the shipped roles are granted, and their users have credentials. */
export class Site<P extends TestServer = TestServer> implements AsyncDisposable {
  readonly plane: P;
  /** As the administrator. */
  readonly api: Api;
  /** Of the manager's user. */
  readonly kubeconfig: string;
  /** Of the simulated cloud's user. */
  readonly driverKubeconfig: string;

  private constructor(plane: P, kubeconfig: string, driverKubeconfig: string) {
    this.plane = plane;
    this.api = plane.connection.api();
    this.kubeconfig = kubeconfig;
    this.driverKubeconfig = driverKubeconfig;
  }

  /** Without kube-controller-manager, unless told otherwise: nobody tidies up after the manager. */
  static async open(options: SiteOptions = {}): Promise<Site<ControlPlane>> {
    const { installed = true, ...more } = options;
    const startPlane = installed ? privateControlPlane : startControlPlane;
    return await Site.#over(await startPlane({ controllerManager: false, ...more }), installed ? ONE_CLUSTER : []);
  }

  /** For tests that are about what the program does: their API server is simulated, but for a sample. Of a real one the options are obeyed. */
  static async drawn(options: DrawnOptions = {}): Promise<Site> {
    return await Site.#over(await privateApiServer({ controllerManager: false, ...options }), ONE_CLUSTER);
  }

  /** The same, as the target cluster of a cell, and nothing else. */
  static async drawnTarget(): Promise<Site> {
    return await Site.#over(await privateApiServer({ controllerManager: false }), TARGET_OF_CELL);
  }

  /** The same as a control cluster only, in which the manager has just these roles, for Leases in namespace `machinist`. */
  static async drawnControl(roles: readonly RoleFile[], options: DrawnOptions = {}): Promise<Site> {
    const plane = await privateApiServer({ controllerManager: false, ...options });
    const site = await Site.#over(plane, []);
    await site.api.send('POST', '/api/v1/namespaces', { metadata: { name: MANAGER_USER } });
    for (const file of roles) await grant(site.api, file, MANAGER_USER);
    return site;
  }

  static async #over<P extends TestServer>(plane: P, files: readonly RoleFile[]): Promise<Site<P>> {
    const { connection } = plane;
    const site = new Site(
      plane,
      await connection.kubeconfigFor({ user: MANAGER_USER }),
      await connection.kubeconfigFor({ user: SIM_DRIVER_USER }),
    );
    for (const file of files) await grant(site.api, file, 'default');
    return site;
  }

  /** A kubeconfig of the manager's user, or of another, for another address of the server: that of a proxy. */
  async kubeconfigThrough(url: string, user = MANAGER_USER): Promise<string> {
    const { directory, ca } = this.plane.connection;
    const identity = await this.plane.connection.identityFor({ user });
    const path = join(directory, `kubeconfig-${user}-through-${new URL(url).port}.yaml`);
    writeKubeconfig(path, { url, ca, identity });
    return path;
  }

  /** A kubeconfig of the manager's user in a further group, which gives no right and shows in audits. */
  async kubeconfigIn(group: string): Promise<string> {
    const { directory, ca, url } = this.plane.connection;
    const identity = await this.plane.connection.credentialFor({ user: MANAGER_USER, groups: [group] });
    const path = join(directory, `kubeconfig-${group}.yaml`);
    writeKubeconfig(path, { url, ca, identity });
    return path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api.close();
    await this.plane[Symbol.asyncDispose]();
  }
}
