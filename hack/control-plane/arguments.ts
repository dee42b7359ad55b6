import { join } from 'node:path';

import type { PkiFiles } from './pki.ts';

/** First address of the service range: what pods know the API server by. */
export const SERVICE_IP = '10.96.0.1';

/** Where etcd listens: a socket that only the owner of the directory can reach, so it needs neither port nor certificate. */
export function etcdSocket(directory: string): string {
  return join(directory, 'etcd.sock');
}

/** Where etcd keeps its data. */
export function etcdDirectory(directory: string): string {
  return join(directory, 'etcd');
}

/** etcd with one member. Nothing dials the advertised addresses, which may not be sockets. */
export function etcdArguments(directory: string): string[] {
  const nowhere = 'http://127.0.0.1:1';
  return [
    '--name=machinist',
    `--data-dir=${etcdDirectory(directory)}`,
    '--unsafe-no-fsync',
    `--listen-client-urls=unix://${etcdSocket(directory)}`,
    `--advertise-client-urls=${nowhere}`,
    `--listen-peer-urls=unix://${join(directory, 'etcd-peer.sock')}`,
    `--initial-advertise-peer-urls=${nowhere}`,
    `--initial-cluster=machinist=${nowhere}`,
    // A member alone needs no patience: elected after 0.3 s instead of 1 s. Shorter beats would keep an idle one busy.
    '--heartbeat-interval=50',
    '--election-timeout=300',
    '--log-level=warn',
  ];
}

/** kube-apiserver on loopback, authorizing like a real cluster. */
export function apiserverArguments(directory: string, pki: PkiFiles, port: number): string[] {
  return [
    `--etcd-servers=unix://${etcdSocket(directory)}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--tls-cert-file=${pki.server}`,
    `--tls-private-key-file=${pki.serverKey}`,
    `--client-ca-file=${pki.ca}`,
    `--token-auth-file=${pki.tokens}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--enable-bootstrap-token-auth=true',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${pki.serviceAccountPublicKey}`,
    `--service-account-signing-key-file=${pki.serviceAccountKey}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    `--kubelet-client-certificate=${pki.kubeletClient}`,
    `--kubelet-client-key=${pki.kubeletClientKey}`,
    '--kubelet-preferred-address-types=InternalIP,Hostname',
    // A loopback address is no valid endpoint of the service "kubernetes", and nothing here uses it.
    '--endpoint-reconciler-type=none',
    '--allow-privileged=true',
    // All clients belong together: nothing is to be shared out fairly, which would take a tenth of the server's CPU time.
    '--enable-priority-and-fairness=false',
    '--profiling=false',
  ];
}

/** What a real cluster runs. */
const CONTROLLERS = ['*', 'bootstrapsigner', 'tokencleaner'];

/** kube-controller-manager with these controllers, by default those that a real cluster runs, quick to notice a dead kubelet. */
export function controllerManagerArguments(
  pki: PkiFiles,
  kubeconfig: string,
  port: number,
  controllers: readonly string[] = CONTROLLERS,
): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--tls-cert-file=${pki.server}`,
    `--tls-private-key-file=${pki.serverKey}`,
    '--leader-elect=false',
    '--use-service-account-credentials=true',
    `--controllers=${controllers.join(',')}`,
    `--cluster-signing-cert-file=${pki.ca}`,
    `--cluster-signing-key-file=${pki.caKey}`,
    `--root-ca-file=${pki.ca}`,
    `--service-account-private-key-file=${pki.serviceAccountKey}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    // Kubelets renew their Lease each 10 s; the default of 50 s makes failures slow to see.
    '--node-monitor-grace-period=16s',
    '--node-monitor-period=2s',
    '--kube-api-qps=100',
    '--kube-api-burst=200',
    '--profiling=false',
  ];
}
