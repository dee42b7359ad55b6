import { isIPv4 } from 'node:net';

/** Whether nobody on the way can play the server of a URL, so that the checksums which it serves prove something. */
export function isTrustedURL({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
}

/** `hostname`: as a URL has it, IPv6 in brackets and IPv4 in full. A name may begin with 127, too. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'));
}
