'use strict';
/*
 * First thing that `npm run demo`, `npm test` and `npm run check` start, by whatever Node is there: installs what is missing,
 * then hands over to the Node version that this project pins. Written so that even an old Node can read it far enough to
 * say what is wrong.
 */
var OLDEST_NODE = 18;
var OWN_NODE = [24, 12];

var major = Number(process.versions.node.split('.')[0]);
if (major < OLDEST_NODE) {
  console.error(
    'Machinist needs Node ' +
      OLDEST_NODE +
      ' or newer to install itself; this is Node ' +
      process.versions.node +
      '. Install a newer Node and try again.',
  );
  process.exit(1);
}
require('./bootstrap-install.cjs')
  .main(process.argv.slice(2), OWN_NODE)
  .catch(function (err) {
    console.error(err);
    process.exit(1);
  });
