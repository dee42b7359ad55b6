/** How the contracts are checked, with programs of node_modules/.bin. Both work offline. */
export const CONTRACT_CHECKS = [
  { name: 'style of the contracts', argv: ['buf', 'lint'] },
  /** What was built for the last release goes on to work: nothing of it was removed, renumbered or retyped. */
  { name: 'driver contract of the last release', argv: ['buf', 'breaking', '--against', 'hack/check/released'] },
] as const;
