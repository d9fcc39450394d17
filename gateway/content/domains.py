"""Ends of domain names that exist, so that code such as `a@b.transpose` is no address."""

from typing import Final

_GENERIC: Final = (
    "com org net edu gov mil int info biz name pro aero asia cat coop jobs mobi museum post tel "
    "travel app dev page cloud online site store tech shop blog web email mail xyz top club live "
    "life world today agency academy bank berlin bio business camp capital care careers cash "
    "center chat church city click clinic codes coffee community company computer consulting cool "
    "design digital direct directory docs domains earth education energy engineer engineering "
    "enterprises estate events exchange expert express family farm finance financial fit "
    "foundation fun fund fyi gallery games global gmbh group guide guru health help holdings host "
    "house hamburg immo industries ink institute insure international investments koeln krd law "
    "legal limited link llc london ltd management marketing media money network news ngo nyc one "
    "ong paris partners parts photo photos pictures place plus press productions properties pub "
    "recipes rocks run ruhr saarland sale school science security services show social software "
    "solutions space studio style support swiss systems team technology tirol tips tokyo tools "
    "tours town training trade university vegas ventures video vip vision wales watch website "
    "wien wiki work works wtf zone example test invalid local internal corp lan home"
)  # fmt: skip
_COUNTRIES: Final = (
    "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs "
    "bt bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee "
    "eg er es et eu fi fj fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm "
    "hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb "
    "lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz "
    "na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs "
    "ru rw sa sb sc sd se sg sh si sj sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk "
    "tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw"
)  # fmt: skip
TOP_DOMAINS: Final = frozenset((*_GENERIC.split(), *_COUNTRIES.split()))
