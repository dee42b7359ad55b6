import { fillIn, ignitionOf, joinButane, type Butane } from './butane.ts';
import type { IronCoreProviderSpec } from './provider-spec.ts';

/** Files of images for Gardener on IronCore look there. */
const STARTER = '/var/lib/ironcore-cloud-config';
const DNS_FILE = '/etc/systemd/resolved.conf.d/dns.conf';

/** What starts the user data, once, when the machine boots for the first time: as Gardener's provider for IronCore does it. */
const BASE: Butane = {
  variant: 'fcos',
  version: '1.3.0',
  storage: {
    files: [
      { path: '/etc/hostname', overwrite: true, mode: 0o644, contents: { inline: '{{ .Hostname }}\n' } },
      { path: `${STARTER}/init.sh`, overwrite: true, mode: 0o755, contents: { inline: '{{ .UserData | trim }}\n' } },
    ],
  },
  systemd: {
    units: [
      {
        name: 'cloud-config-init.service',
        enabled: true,
        contents: [
          '[Unit]',
          'Wants=network-online.target',
          'After=network-online.target',
          `ConditionPathExists=!${STARTER}/init.done`,
          '',
          '[Service]',
          'Type=oneshot',
          `ExecStart=${STARTER}/init.sh`,
          `ExecStopPost=touch ${STARTER}/init.done`,
          'Restart=on-failure',
          'RestartSec=5',
          '',
          '[Install]',
          'WantedBy=multi-user.target',
          '',
        ].join('\n'),
      },
    ],
  },
};

/** The Ignition config of a machine, as JSON. Throws InvalidArgument that names the member of the provider spec. */
export function ignitionFor(
  spec: Pick<IronCoreProviderSpec, 'ignition' | 'ignitionOverride' | 'dnsServers'>,
  hostname: string,
  userData: string,
): string {
  const { ignition = {}, ignitionOverride, dnsServers } = spec;
  const joined = joinButane(BASE, ignition, ignitionOverride);
  const whole = joinButane(joined, dnsConfig(dnsServers), false);
  return JSON.stringify(ignitionOf(fillIn(whole, { Hostname: hostname, UserData: userData })));
}

function dnsConfig(servers: readonly string[]): Butane {
  if (servers.length === 0) return {};
  const inline = ['[Resolve]', ...servers.map((server) => `DNS=${server}`)].join('\n');
  return { storage: { files: [{ path: DNS_FILE, mode: 0o644, contents: { inline } }] } };
}
