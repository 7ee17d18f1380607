"""The style sheet of reports: light, dark, narrow and printed."""

STYLE = """
:root{color-scheme:light dark;--paper:#fbfaf6;--card:#fff;--ink:#1b1d21;--soft:#585e69;--rule:#e3dfd6;--tint:#f3f0e8;
--accent:#1b5e9e;--good:#14694a;--goodt:#e2f1e8;--warn:#7a4b00;--warnt:#fbf0d9;--bad:#a82418;--badt:#fae6e2;
--m0:#0b67ab;--m1:#bd5600;--m2:#04775a;--m3:#97358a;--m4:#7d6200;--m5:#2b7f96;--m6:#b02a37;--m7:#6b4e2e;--grey:#5c6068;--m8:#4a4fb5;
--serif:ui-serif,"Iowan Old Style",Charter,Georgia,serif;--sans:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;
--mono:ui-monospace,"SF Mono",Menlo,Consolas,monospace}
@media screen and (prefers-color-scheme:dark){:root{--paper:#131519;--card:#1a1d22;--ink:#ebe9e4;--soft:#a7adb8;--rule:#2e333b;--tint:#20242a;
--accent:#8abdf5;--good:#7fd8ab;--goodt:#16302a;--warn:#f0c060;--warnt:#33290f;--bad:#ff9a8f;--badt:#3a1d1a;
--m0:#6fb7f5;--m1:#f5a25d;--m2:#5fd3ab;--m3:#e09ad4;--m4:#dcc04e;--m5:#7fd3e8;--m6:#ff8f96;--m7:#cba680;--grey:#b4bac4;--m8:#a9acff}}
*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 var(--sans);overflow-wrap:break-word}
main,footer{max-width:68rem;margin:0 auto;padding:0 1.25rem}
a{color:var(--accent);text-underline-offset:.15em}
:is(a,summary,[tabindex]):focus-visible{outline:3px solid var(--accent);outline-offset:2px;border-radius:4px}
h1{font:600 clamp(1.7rem,4.4vw,2.5rem)/1.15 var(--serif);margin:.2rem 0 .5rem;text-wrap:balance;overflow-wrap:anywhere}
h2{font:600 1.35rem/1.25 var(--serif);margin:0 0 .2rem}h3{font:600 1rem var(--sans);margin:1.2rem 0 .4rem}
article>header,main>.eyebrow{margin-top:2.2rem}article>header h2{font-size:1.8rem}
.eyebrow{font:600 .82rem var(--sans);color:var(--soft);margin:0}
.lead{font:400 clamp(1.08rem,2.4vw,1.3rem)/1.5 var(--serif);max-width:48rem;margin:.4rem 0 1.1rem;text-wrap:pretty;overflow-wrap:anywhere}
.facts{display:flex;flex-wrap:wrap;gap:.35rem 1.3rem;margin:0 0 1.2rem;padding:0;list-style:none;color:var(--soft);font-size:.9rem}
.facts strong{color:var(--ink);font-weight:600;font-variant-numeric:tabular-nums}
.chip{display:inline-block;padding:.12rem .6rem;border-radius:99px;font-size:.82rem;font-weight:600;background:var(--tint);color:var(--soft)}
.chip.good{background:var(--goodt);color:var(--good)}.chip.warn{background:var(--warnt);color:var(--warn)}.chip.bad{background:var(--badt);color:var(--bad)}
section{margin:1.6rem 0 0}.why,.note{color:var(--soft);margin:.1rem 0 .7rem;max-width:48rem;font-size:.92rem}.note{font-size:.84rem}
.card{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:1.1rem 1.2rem;min-width:0}
.caution{background:var(--warnt);border-color:var(--warn)}.caution h2{font-size:1.1rem;color:var(--warn)}.caution ul{margin:.4rem 0 0;padding-left:1.2rem}
.list{margin:.2rem 0 .7rem;padding-left:1.2rem;font-size:.92rem;overflow-wrap:anywhere}
.finding>.eyebrow{margin-top:.5rem}.finding+.finding{border-top:1px solid var(--rule);padding-top:.8rem}.finding .lead{font-size:1.08rem;margin:.2rem 0 .5rem}.finding .facts{margin:0 0 .8rem}
.scroll{overflow-x:auto;position:relative;background-image:linear-gradient(to left,var(--card) 40%,transparent),linear-gradient(to left,var(--rule),transparent);
background-position:right;background-size:3rem 100%,1rem 100%;background-repeat:no-repeat;background-attachment:local,scroll}nav ul{columns:2;column-gap:2.5rem;padding-left:1.2rem;font-size:.92rem}nav li{break-inside:avoid;overflow-wrap:anywhere}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}.chart,.heat,.wide{width:100%}
caption{text-align:left;color:var(--soft);font-size:.86rem;padding:0 0 .5rem}
th{font-weight:600;color:var(--soft);font-size:.82rem;text-align:right;padding:.35rem .6rem;vertical-align:bottom}
td{padding:.3rem .6rem;text-align:right;border-top:1px solid var(--rule)}thead td{border:0}
.table th,.table td{white-space:pre;text-align:right;padding-left:.45rem;padding-right:.45rem}.table th,.many td{white-space:pre-wrap}.many :is(th,td){padding-left:.3rem;padding-right:.3rem;font-size:.8rem}
th.l,td.l,.table th:first-child,.table td:first-child,.left2 :is(th,td):nth-child(-n+2),.left3 :is(th,td):nth-child(-n+3),
.left4 :is(th,td):nth-child(-n+4),.left5 :is(th,td):nth-child(-n+5){text-align:left}
.table th:first-child,.table td:first-child,.scroll th[scope=row],.scroll .corner{position:sticky;left:0;background:var(--card)}
th[scope=row]{vertical-align:middle;color:var(--ink);font-size:.92rem;border-top:1px solid var(--rule);text-align:left;min-width:7.5rem;overflow-wrap:break-word}
.nw{white-space:nowrap}.wide th[scope=col],.heat th[scope=col]{text-align:center}
.card>.scroll+.scroll,.card>.chart+.chart,.table+.table{margin-top:1.4rem}.table p{color:var(--soft);font-size:.84rem;margin:.4rem 0}
.who{display:inline-flex;max-width:100%;align-items:center;gap:.5rem;font-weight:600}.who svg{width:14px;height:14px;flex:none}
.sub{display:block;font-weight:400;color:var(--soft);font-size:.8rem;overflow-wrap:anywhere}
svg{display:block}svg text{font:12px var(--sans);fill:var(--soft)}.grid{stroke:var(--rule);stroke-width:1}
.iv{stroke:currentColor;stroke-width:2.5;stroke-linecap:round}.dot{fill:currentColor}
.ln{fill:none;stroke:currentColor;stroke-width:2.2;vector-effect:non-scaling-stroke;stroke-linejoin:round}.bd{fill:currentColor;fill-opacity:.15}
.c0{color:var(--m0)}.c1{color:var(--m1)}.c2{color:var(--m2)}.c3{color:var(--m3)}.c4{color:var(--m4)}.c5{color:var(--m5)}
.c6{color:var(--m6)}.c7{color:var(--m7)}.grey{color:var(--grey)}.c8{color:var(--m8)}
.accent{color:var(--accent)}.suspected{color:var(--bad)}.look{color:var(--warn)}.above{color:var(--good)}.faint{color:var(--soft);opacity:.4}
.ln.faint{stroke-width:1}.ring{fill:none;stroke:currentColor;stroke-width:2}.thin{stroke:currentColor;stroke-width:1.5}
.name{paint-order:stroke;stroke:var(--card);stroke-width:3px}svg text.name{fill:var(--ink)}svg text:is(.suspected,.look,.above){fill:currentColor;font-weight:600}
.target{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 4}.whisker{stroke:currentColor;stroke-width:1.5}
.box{fill:currentColor;fill-opacity:.16;stroke:currentColor;stroke-width:1.2}.median{stroke:currentColor;stroke-width:2.5}.one{fill:currentColor;fill-opacity:.55}
.piece{fill:currentColor;fill-opacity:var(--shade);stroke:currentColor;stroke-width:1}svg text.inside{fill:var(--ink)}.p0 text.inside{fill:var(--card)}
.p0{--shade:1}.p1{--shade:.5}.p2{--shade:.06}.p3{--shade:.3}.p4{--shade:.17}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.9rem 1.2rem}.panels p{margin:0;font-size:.92rem}.panels .inner{padding:.5rem .6rem .1rem 2.3rem}
.ends{display:block;font-size:.76rem;white-space:nowrap}.corner{vertical-align:bottom;font-size:.82rem;color:var(--soft)}
.plot{width:60%;min-width:8rem;padding-left:1rem;padding-right:1rem}td.plot{padding-top:0;padding-bottom:0}
.plane{max-width:44rem}td.plot,.heat .who{vertical-align:middle}.plane .inner{padding:.4rem 1rem .2rem 2.8rem}.axis{font-size:.82rem;color:var(--soft);margin:.2rem 0}.below{text-align:center}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;list-style:none;margin:.4rem 0;padding:0;font-size:.86rem}.legend li{display:flex;gap:.35rem;align-items:center}
.legend svg{width:14px;height:14px}
.cell{text-align:center;padding:.4rem .3rem;border:2px solid var(--card)}.up{background:var(--goodt);color:var(--good);font-weight:600}
.down{background:var(--badt);color:var(--bad)}.even{background:var(--tint);color:var(--soft)}
.h0,.h1,.h2,.h3,.h4,.h5,.h6,.h7,.h8{background:color-mix(in srgb,var(--accent) var(--mix),var(--card))}
.h0{--mix:5%}.h1{--mix:9%}.h2{--mix:13%}.h3{--mix:16%}.h4{--mix:20%}.h5{--mix:25%}.h6{--mix:30%}.h7{--mix:35%}.h8{--mix:40%}
.vh{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden;white-space:nowrap}
figure{margin:.6rem 0 1.2rem}figcaption{font-weight:600;font-size:.92rem;margin-bottom:.4rem}
details{border-top:1px solid var(--rule);padding:.55rem 0}summary{cursor:pointer;color:var(--accent);font-size:.92rem}
code,.mono{font:.85em/1.5 var(--mono);overflow-wrap:anywhere}
pre{background:var(--tint);border-radius:8px;padding:.8rem 1rem;font:.84rem/1.5 var(--mono);margin:.6rem 0;white-space:pre-wrap;overflow-wrap:anywhere}
.say{display:grid;grid-template-columns:9rem minmax(0,1fr);gap:.2rem 1rem;padding:.5rem 0;border-top:1px solid var(--rule)}
.say .by{font-size:.86rem;color:var(--soft);overflow-wrap:anywhere}.say .tx{white-space:pre-wrap;overflow-wrap:anywhere}
.ref{color:var(--soft);font-size:.92rem}
dl{display:grid;grid-template-columns:8rem minmax(0,1fr);gap:.35rem 1rem;margin:0}dt{color:var(--soft);font-size:.9rem}dd{margin:0;overflow-wrap:anywhere}
footer{color:var(--soft);font-size:.86rem;padding-top:2rem;padding-bottom:3rem;overflow-wrap:anywhere}
@media(max-width:640px){.hide,.between{display:none}.plot{min-width:5rem;width:50%}table{font-size:.88rem}.card{padding:.8rem .7rem}
th,td{padding-left:.35rem;padding-right:.35rem}main,footer{padding:0 .9rem}.say,dl{grid-template-columns:minmax(0,1fr)}nav ul{columns:1}}
@media print{:root{color-scheme:light;--paper:#fff}nav{display:none}.card{border:0;padding:0;break-inside:avoid}}
"""  # noqa: E501
